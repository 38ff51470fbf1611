"""Spreadsheets as a source of objects to import (spec 11, 11.2): CSV and XLSX files, a sheet per repository.

cells      values of cells, and the prefix that keeps spreadsheets from reading a text as a formula
csv_file   sheets of a CSV file        xlsx_file   sheets of an XLSX file
mapping    mappings of sheets to repositories and of columns to attributes
saved      mappings that users have saved
columns    conversion of a column's cells to values of a body
source     rows as bodies for the import
exporting  rows of a repository        writing  rows as files: exports, templates, refused rows
"""

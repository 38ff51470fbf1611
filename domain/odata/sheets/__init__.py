"""Spreadsheets as a source of objects to import (spec 11, 11.2): CSV and XLSX files, a sheet per repository.

cells      what a cell holds, and the prefix that keeps spreadsheets from reading a text as a formula
csv_file   sheets of a CSV file        xlsx_file   sheets of an XLSX file
mapping    which repository a sheet is of, and which attribute a column
saved      mappings that users have saved
columns    a column's cells as values of a body
source     the rows as bodies for the import
exporting  rows of a repository        writing  rows as files: exports, templates, refused rows
"""

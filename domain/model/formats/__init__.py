"""Format specifiers of placeholders, as in .NET, by the reader's culture (spec 14, 14.5).

specifiers  the specifiers of each kind of value, and the text of a value in one
numbers     C D N P and patterns of digits
dates       standard specifiers of one letter, and patterns
texts       multilanguage texts and values of custom properties
cultures    separators, patterns and names of a language, from Unicode CLDR (Babel)
"""

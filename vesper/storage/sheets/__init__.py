"""Sheets of texts: XLSX workbooks, read and written without a conversion of numbers to floats."""

"""Decision tables as sheets: import of CSV and XLSX files, export of the tables of a node for review."""

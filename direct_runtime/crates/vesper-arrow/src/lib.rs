//! Batches: a node over the rows of an Arrow table, columns in and columns out, an error column instead of exceptions.

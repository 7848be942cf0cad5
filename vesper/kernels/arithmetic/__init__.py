"""Arithmetic that several families of kernels share."""

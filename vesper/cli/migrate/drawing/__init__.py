"""The confidence plot as SVG and PNG."""

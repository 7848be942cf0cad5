"""Tools with which a model writes nodes: files of one folder, and the commands of Vesper on them."""

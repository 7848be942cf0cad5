"""Foreign spellings, which authors bring from other languages: their table and translation."""

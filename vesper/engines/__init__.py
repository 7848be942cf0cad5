"""The engines, behind one protocol (`vesper/engines/engine.py`)."""

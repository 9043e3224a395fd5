"""The documents and folders of distributed checkpoints; without torch."""

"""What stands around the engine in a daemon: documents, people, and the window to look through."""

"""Channels: each finds documents in one way, over one collection."""

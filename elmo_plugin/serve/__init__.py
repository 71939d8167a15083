"""Answers requests to trained models over HTTP, and shows the answers on a page."""

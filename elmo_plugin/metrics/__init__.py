"""Metrics that several tasks share."""

"""Analyses of biLMs and trained models. They return numbers and objects; commands print them."""

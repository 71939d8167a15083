"""What several packages need, and none of them owns; imports nothing else of ours."""

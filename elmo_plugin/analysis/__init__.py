"""What a biLM has learned, as numbers and objects; `elmo_plugin.commands` prints them."""

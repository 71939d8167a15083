"""The recurrent cells, one file each."""

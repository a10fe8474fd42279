"""An index of the words of all lines, in front of the scan of the texts."""

"""The ORC format: implements `fretsaw.formats.FileReader` in `reader`."""

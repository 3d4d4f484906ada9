"""What a model is: loading, indexing, selecting, cutting, feeding, comparing."""

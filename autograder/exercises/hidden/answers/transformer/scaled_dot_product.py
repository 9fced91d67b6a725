def scaled_dot_product(query, key, value, mask=None, dropout_p=0.0):
    """Return the context and the probabilities; a good answer has about 8 lines."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    probabilities = scores.softmax(-1)
    if mask is not None:
        probabilities = probabilities.masked_fill(~mask, 0.0)
    probabilities = F.dropout(probabilities, dropout_p, training=True)
    return probabilities @ value, probabilities

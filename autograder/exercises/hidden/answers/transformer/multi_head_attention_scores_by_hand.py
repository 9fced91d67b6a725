class MultiHeadAttention(nn.Module):
    def __init__(self, hidden_size, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.query = nn.Linear(hidden_size, hidden_size)
        self.key = nn.Linear(hidden_size, hidden_size)
        self.value = nn.Linear(hidden_size, hidden_size)
        self.output = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden, mask=None):
        batch, length, size = hidden.shape
        parts = []
        for layer in (self.query, self.key, self.value):
            part = layer(hidden).view(batch, length, self.num_heads, size // self.num_heads)
            parts.append(part.transpose(1, 2))
        query, key, value = parts
        scores = query @ key.transpose(-2, -1) / math.sqrt(size // self.num_heads)
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        context = scores.softmax(-1) @ value
        return self.output(context.transpose(1, 2).reshape(batch, length, size))

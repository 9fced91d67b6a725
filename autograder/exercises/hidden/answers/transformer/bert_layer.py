class BertEncoder(nn.Module):
    """A stack of layers; a good answer has about 25 lines, a class for one layer among them."""

    def __init__(self, num_layers, hidden_size, num_heads, intermediate_size, norm_first=False):
        super().__init__()
        sizes = (hidden_size, num_heads, intermediate_size, norm_first)
        self.layers = nn.ModuleList(OneLayer(*sizes) for _ in range(num_layers))

    def forward(self, hidden, mask=None):
        for layer in self.layers:
            hidden = layer(hidden, mask)
        return hidden


class OneLayer(nn.Module):
    def __init__(self, hidden_size, num_heads, intermediate_size, norm_first):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(hidden_size, num_heads)
        self.attention_norm = nn.LayerNorm(hidden_size, eps=1e-12)
        self.up = nn.Linear(hidden_size, intermediate_size)
        self.down = nn.Linear(intermediate_size, hidden_size)
        self.feed_forward_norm = nn.LayerNorm(hidden_size, eps=1e-12)

    def forward(self, hidden, mask=None):
        if self.norm_first:
            hidden = hidden + self.attention(self.attention_norm(hidden), mask)
            return hidden + self.down(F.gelu(self.up(self.feed_forward_norm(hidden))))
        hidden = self.attention_norm(hidden + self.attention(hidden, mask))
        return self.feed_forward_norm(hidden + self.down(F.gelu(self.up(hidden))))

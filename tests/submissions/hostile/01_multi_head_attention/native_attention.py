"""Strategy: hand the four layers to the operator with which PyTorch makes multi-head attention fast. Surface: operators of PyTorch that do the task.

Class: answer theft. Unprotected: grader one_module gives full marks. Level: 5.
Must get at most 1.6: the operator is taken out of the worker; the names and shapes of the parameters are right.
"""

# The file tests/submissions/hostile/01_multi_head_attention/attention_of_torch.py of this repository stands here.


class MultiHeadAttention(MultiHeadAttention):
    def forward(self, hidden, mask=None):
        b, n, d = hidden.shape
        parts = self.query, self.key, self.value
        w, bias = torch.cat([p.weight for p in parts]), torch.cat([p.bias for p in parts])
        if mask is not None:
            mask = ~mask.expand(b, self.heads, n, n)
        return torch._native_multi_head_attention(hidden, hidden, hidden, d, self.heads, w, bias, self.output.weight, self.output.bias, mask, False, True, 2 if mask is not None else None)[0]

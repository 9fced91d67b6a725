def train(hidden, labels, seed, folder, sizes):
    """Return a trained model, and leave in `folder` how it went; a good answer has about 14 lines."""
    torch.manual_seed(seed)
    model = MaskedLanguageModel(TransformerConfig(**sizes))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    with SummaryWriter(folder) as writer:
        writer.add_graph(model, hidden[0])
        for step, (tokens, wanted) in enumerate(zip(hidden, labels, strict=True), start=1):
            loss = F.cross_entropy(model(tokens).flatten(0, 1), wanted.flatten())
            optimizer.zero_grad()
            loss.backward()
            length = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            writer.add_scalar("loss/train", loss.item(), step)
            writer.add_scalar("gradient_length", length.item(), step)
    return model

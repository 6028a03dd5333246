"""Small models of the kinds that make marking hard, and one training step of each."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.bn = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(0.1)
        self.same = nn.Identity()
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        y = self.relu(self.bn(self.conv1(x)))
        return self.relu(self.conv2(self.drop(self.same(y))) + x)


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(inplace=True))
        self.body = nn.Sequential(Residual(8), Residual(8), Residual(8))
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        return self.head(self.body(self.stem(x)).mean((2, 3)))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        wide = 2 * width
        self.mlp = nn.Sequential(nn.Linear(width, wide), nn.GELU(), nn.Linear(wide, width))

    def forward(self, x, *, scale):
        q, k, v = self.qkv(input=self.norm1(input=x)).chunk(3, -1)
        scores = torch.softmax(q @ k.transpose(-1, -2) * scale, -1)
        x = x + self.out(input=scores @ v)
        return x + self.mlp(input=self.norm2(input=x))


class Transformer(nn.Module):
    def __init__(self, width=16, vocabulary=50, recompute=None):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList([Block(width) for _ in range(3)])
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.embed.weight
        self.recompute = recompute  # None, or use_reentrant of checkpoint

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            if self.recompute is None:
                x = block(x, scale=0.25)
            else:
                x = checkpoint(lambda y, b=block: b(y, scale=0.25), x, use_reentrant=self.recompute)
        return self.head(x)


class Rnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 8)
        self.cell = nn.GRUCell(8, 8)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        x, _ = self.lstm(x)
        state = torch.zeros(x.shape[1], 8)
        for part in x:
            state = self.cell(part, state)
        return self.head(state)


class Towers(nn.Module):
    """Neither tower's input has a node, so only the first node of each tells where it ends."""

    def __init__(self):
        super().__init__()
        self.text = nn.Sequential(nn.Embedding(50, 8), nn.Sequential(nn.Linear(8, 8), nn.Tanh()))
        self.image = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(inplace=True), nn.Flatten(2))

    def forward(self, tokens, image):
        text = F.normalize(self.text(tokens).mean(1), dim=-1)
        image = F.normalize(self.image(image).mean(2), dim=-1)
        return text @ image.t()


def classify(model, *inputs):
    def step():
        out = model(*inputs).flatten(0, -2)
        loss = F.cross_entropy(out, torch.zeros(len(out), dtype=torch.long))
        loss.backward()
        return loss

    return step


def gan():
    maker = nn.Sequential(nn.Linear(4, 8), nn.ReLU(inplace=True), nn.Linear(8, 2))
    critic = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))

    def step():
        noise = torch.randn(8, 4)
        fake = maker(noise)
        (critic(fake.detach()).mean() - critic(torch.randn(8, 2)).mean()).backward()
        loss = -critic(fake).mean()
        loss.backward()
        return loss

    step.parameters = [*maker.parameters(), *critic.parameters()]
    return step


def trainings():
    """(name, function that makes one step of training and returns the loss)."""
    tokens, image = torch.randint(0, 50, (4, 16)), torch.randn(4, 3, 8, 8)
    cases = [
        ("cnn", Cnn(), [image]),
        ("transformer", Transformer(), [tokens]),
        ("checkpointing", Transformer(recompute=False), [tokens]),
        ("reentrant checkpointing", Transformer(recompute=True), [tokens]),
        ("rnn", Rnn(), [torch.randn(5, 3, 8)]),
    ]
    for name, model, inputs in cases:
        yield name, _training(classify(model, *inputs), model.parameters())
    step = gan()
    yield "gan", _training(step, step.parameters)


def _training(step, parameters):
    optimizer = torch.optim.Adam(parameters, lr=0.01)

    def train():
        optimizer.zero_grad()
        loss = step()
        optimizer.step()
        return loss.item()

    return train

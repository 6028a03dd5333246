"""Small programs of many kinds, for programs_test.py: what each prints must have the same bits with
and without marks, and each says how many steps it has for the recorder.

Every text runs behind PRELUDE. `needs`: what this PyTorch must have ("torch.compile", "lightning").
`whole`: it starts processes or reads its own file, so it gets a Python of its own.
"""

from collections import namedtuple

Program = namedtuple("Program", "name steps text needs whole", defaults=((), False))

PRELUDE = """
import copy, io, itertools, math, os, random, sys
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0); random.seed(0); torch.set_num_threads(1)
def say(*values):
    for v in values: print(float(v).hex())
def fit(model, optimizer, loss_of, n=6):
    for i in range(n):
        optimizer.zero_grad()
        loss = loss_of(model, i)
        loss.backward()
        optimizer.step()
        say(loss)
def sgd(model, lr=0.05): return torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
def adam(model, lr=0.01): return torch.optim.Adam(model.parameters(), lr=lr)
def total(model): say(sum(p.detach().double().abs().sum() for p in model.parameters()))
"""

VISION = [
    Program("residual network", 6, """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.relu = nn.ReLU(True)
    def forward(self, x): return self.relu(self.bn(self.conv(x)) + x)
m = nn.Sequential(nn.Conv2d(3, 8, 3), Block(), Block(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                  nn.Linear(8, 5))
fit(m, sgd(m), lambda m, i: F.cross_entropy(m(torch.randn(4, 3, 12, 12)), torch.arange(4)))
"""),
    Program("channels_last and depthwise convolutions", 6, """
m = nn.Sequential(nn.Conv2d(3, 6, 1), nn.Conv2d(6, 6, 3, groups=6), nn.ReLU6(True),
                  nn.Conv2d(6, 2, 1))
last = torch.channels_last
m = m.to(memory_format=last)
fit(m, sgd(m), lambda m, i: m(torch.randn(2, 3, 8, 8).contiguous(memory_format=last)).pow(2).mean())
"""),
    Program("U-Net", 6, """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 8, 3, stride=2, padding=1)
        self.up, self.out = nn.ConvTranspose2d(8, 4, 2, stride=2), nn.Conv2d(8, 1, 1)
    def forward(self, x):
        a = F.relu(self.a(x)); b = F.relu(self.b(a))
        return self.out(torch.cat([a, self.up(b)], 1))
m = Net()
def loss(m, i):
    y = m(torch.randn(2, 1, 8, 8))
    return F.binary_cross_entropy_with_logits(y, torch.ones_like(y))
fit(m, adam(m), loss)
"""),
    Program("vision transformer", 6, """
class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 16, 4, 4)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.head = nn.Linear(16, 3)
    def forward(self, x):
        return self.head(self.layer(self.patch(x).flatten(2).transpose(1, 2)).mean(1))
m = Vit()
fit(m, adam(m), lambda m, i: F.cross_entropy(m(torch.randn(3, 3, 8, 8)), torch.arange(3)))
"""),
    Program("variational autoencoder", 6, """
class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Linear(8, 6), nn.Linear(3, 8)
    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, -1)
        return self.dec(mu + torch.randn_like(mu) * (0.5 * logvar).exp()), mu, logvar
m = Vae()
def loss(m, i):
    x = torch.randn(4, 8); y, mu, logvar = m(x)
    return F.mse_loss(y, x) - 0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).mean()
fit(m, adam(m), loss)
"""),
    Program("diffusion with an average of weights", 6, """
m = nn.Sequential(nn.Linear(9, 16), nn.SiLU(), nn.Linear(16, 8)); ema = copy.deepcopy(m)
def loss(m, i):
    x, t, e = torch.randn(4, 8), torch.rand(4, 1), torch.randn(4, 8)
    with torch.no_grad():
        for a, b in zip(ema.parameters(), m.parameters()): a.lerp_(b, 0.1)
    return F.mse_loss(m(torch.cat([x * (1 - t) + e * t, t], 1)), e)
fit(m, adam(m), loss); total(ema)
"""),
    Program("everything in place", 6, """
class Net(nn.Module):
    def __init__(self): super().__init__(); self.l = nn.Linear(6, 6)
    def forward(self, x): return self.l(x).mul_(0.5).add_(1).relu_()
m = nn.Sequential(Net(), Net(), nn.Linear(6, 6), nn.Dropout(0.3, True))
fit(m, sgd(m), lambda m, i: m(torch.randn(4, 6)).sum())
"""),
    Program("Fourier transforms and complex numbers", 6, """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(5, dtype=torch.cfloat))
    def forward(self, x): return torch.fft.irfft(torch.fft.rfft(x) * self.w, n=8)
m = Net()
fit(m, sgd(m), lambda m, i: m(torch.randn(4, 8)).pow(2).mean())
"""),
]

TEXT = [
    Program("transformer encoder with masks", 6, """
layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1)
m = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
mask = torch.triu(torch.full((5, 5), -math.inf), 1)
fit(m, adam(m), lambda m, i: m(src=torch.randn(5, 3, 16), mask=mask).pow(2).mean())
"""),
    Program("language model with tied weights", 6, """
class Lm(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.o = nn.Embedding(20, 8), nn.Linear(8, 20, bias=False)
        self.rnn = nn.LSTM(8, 8, batch_first=True)
        self.o.weight = self.e.weight
    def forward(self, x, state=None): y, state = self.rnn(self.e(x), state); return self.o(y), state
m = Lm(); state = None
def loss(m, i):
    global state
    y, state = m(torch.randint(0, 20, (2, 6)), state); state = tuple(s.detach() for s in state)
    return F.cross_entropy(y.flatten(0, 1), torch.randint(0, 20, (12,)))
fit(m, adam(m), loss)
"""),
    Program("packed sequences", 6, """
m = nn.GRU(4, 4, bidirectional=True)
def loss(m, i):
    x = nn.utils.rnn.pack_padded_sequence(torch.randn(5, 3, 4), [5, 3, 2])
    y, h = m(x); return nn.utils.rnn.pad_packed_sequence(y)[0].pow(2).mean() + h.mean()
fit(m, sgd(m), loss)
"""),
    Program("sparse gradients", 6, """
m = nn.EmbeddingBag(50, 4, sparse=True, mode="sum")
o = torch.optim.SparseAdam(list(m.parameters()))
fit(m, o, lambda m, i: m(torch.randint(0, 50, (3, 4))).pow(2).mean())
"""),
    Program("sequence to sequence with teacher forcing", 6, """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec, self.o = nn.GRUCell(4, 8), nn.GRUCell(4, 8), nn.Linear(8, 4)
    def forward(self, x, y):
        h = torch.zeros(2, 8)
        for t in x: h = self.enc(t, h)
        out, last = [], y[0]
        for t in y:
            h = self.dec(last, h)
            out.append(self.o(h))
            last = t if random.random() < 0.5 else out[-1]
        return torch.stack(out)
m = Net()
fit(m, adam(m), lambda m, i: m(torch.randn(3, 2, 4), torch.randn(4, 2, 4)).pow(2).mean())
"""),
    Program("checkpointing, reentrant", 6, """
from torch.utils.checkpoint import checkpoint
a, b = nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.2)), nn.Linear(6, 1); m = nn.ModuleList([a, b])
def loss(m, i):
    x = torch.randn(4, 6, requires_grad=True)
    return b(checkpoint(a, x, use_reentrant=True)).mean()
fit(m, sgd(m), loss)
"""),
    Program("checkpointing, not reentrant", 6, """
from torch.utils.checkpoint import checkpoint
a, b = nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.2)), nn.Linear(6, 1); m = nn.ModuleList([a, b])
fit(m, sgd(m), lambda m, i: b(checkpoint(a, torch.randn(4, 6), use_reentrant=False)).mean())
"""),
    # Its first calls count as steps, until nobody can take them for training: three for the root,
    # then one each.
    Program("generation with a cache", 9, """
class Lm(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.kv, self.o = nn.Embedding(20, 8), nn.Linear(8, 16), nn.Linear(8, 20)
    def forward(self, x, *, cache):
        k, v = self.kv(self.e(x)).chunk(2, -1); cache.append((k, v))
        ks, vs = (torch.stack(c) for c in zip(*cache))
        return self.o((torch.softmax((ks * k).sum(-1), 0).unsqueeze(-1) * vs).sum(0))
m, token, cache = Lm().eval(), torch.tensor([1]), []
with torch.no_grad():
    for _ in range(12): y = m(token, cache=cache); token = y.argmax(-1); say(y.sum())
"""),
]

ADVERSARIAL = [
    Program("GAN", 6, """
g, d = nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2, True), nn.Linear(8, 1))
og, od = adam(g), adam(d)
for _ in range(6):
    od.zero_grad(); z = torch.randn(4, 3)
    ld = F.softplus(d(g(z).detach())).mean() + F.softplus(-d(torch.randn(4, 4))).mean()
    ld.backward()
    od.step()
    og.zero_grad(); lg = F.softplus(-d(g(z))).mean(); lg.backward(); og.step(); say(ld, lg)
"""),
    # The critic steps first, so that its steps count.
    Program("WGAN with a penalty on gradients", 15, """
g, d = nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
og, od = adam(g), adam(d)
for _ in range(3):
    for _ in range(5):
        od.zero_grad(); x = torch.randn(4, 4); fake = g(torch.randn(4, 3)).detach()
        mix = (x + fake).mul(0.5).requires_grad_()
        grad, = torch.autograd.grad(d(mix).sum(), mix, create_graph=True)
        loss = d(fake).mean() - d(x).mean() + (grad.norm(dim=1) - 1).pow(2).mean()
        loss.backward()
        od.step()
        say(loss)
    og.zero_grad(); loss = -d(g(torch.randn(4, 3))).mean(); loss.backward(); og.step(); say(loss)
"""),
    Program("two generators with one optimizer", 6, """
a, b = nn.Linear(4, 4), nn.Linear(4, 4)
o = torch.optim.Adam(itertools.chain(a.parameters(), b.parameters()))
for _ in range(6):
    x = torch.randn(3, 4)
    o.zero_grad()
    loss = F.l1_loss(b(a(x)), x) + F.l1_loss(a(b(x)), x)
    loss.backward()
    o.step()
    say(loss)
"""),
    Program("an attack on the input", 6, """
m = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)); o = sgd(m)
def loss(m, i):
    x, y = torch.randn(3, 4).requires_grad_(), torch.tensor([0, 1, 0])
    grad, = torch.autograd.grad(F.cross_entropy(m(x), y), x)
    return F.cross_entropy(m(x.detach() + 0.1 * grad.sign()), y)
fit(m, o, loss)
"""),
]

REINFORCEMENT = [
    Program("REINFORCE", 6, """
m = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2)); o = adam(m)
def loss(m, i):
    state, logs, reward = torch.zeros(2), [], 0.0
    for _ in range(5):
        p = torch.distributions.Categorical(logits=m(state))
        action = p.sample()
        logs.append(p.log_prob(action))
        state = state + torch.randn(2) * 0.1 + action; reward += float(state.sum())
    return -(torch.stack(logs).sum() * reward)
fit(m, o, loss)
"""),
    Program("Q-learning with a target network", 8, """
q, target = nn.Linear(4, 2), nn.Linear(4, 2); o = adam(q); memory = []
for step in range(12):
    s = torch.randn(4)
    with torch.no_grad(): action = int(q(s).argmax())
    memory.append((s, action, torch.randn(4)))
    if len(memory) < 5: continue
    batch = random.sample(memory, 4); s, a, n = zip(*batch)
    with torch.no_grad(): want = 1 + 0.9 * target(torch.stack(n)).max(1)[0]
    loss = F.smooth_l1_loss(q(torch.stack(s)).gather(1, torch.tensor(a)[:, None])[:, 0], want)
    o.zero_grad(); loss.backward(); o.step(); say(loss)
    if step % 4 == 0: target.load_state_dict(q.state_dict())
"""),
    Program("actor and critic", 6, """
actor, critic = nn.Linear(3, 2), nn.Linear(3, 1); oa, oc = adam(actor), adam(critic)
for _ in range(6):
    s = torch.randn(4, 3); p = torch.distributions.Categorical(logits=actor(s)); action = p.sample()
    gain = torch.randn(4) - critic(s)[:, 0]
    oa.zero_grad(); la = -(p.log_prob(action) * gain.detach()).mean(); la.backward(); oa.step()
    oc.zero_grad(); lc = gain.pow(2).mean(); lc.backward(); oc.step(); say(la, lc)
"""),
    Program("PPO", 12, """
m = nn.Linear(3, 2); o = adam(m)
for _ in range(3):
    with torch.no_grad():
        s = torch.randn(8, 3)
        p = torch.distributions.Categorical(logits=m(s))
        a = p.sample()
        old = p.log_prob(a)
    gain = torch.randn(8)
    for epoch in range(4):
        ratio = (torch.distributions.Categorical(logits=m(s)).log_prob(a) - old).exp()
        loss = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
        o.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(m.parameters(), 0.5)
        o.step()
        say(loss)
"""),
    Program("evolution strategies", 6, """
m = nn.Linear(3, 1); o = sgd(m); x = torch.randn(8, 3)
for _ in range(6):
    with torch.no_grad():
        for p in m.parameters():
            e = torch.randn_like(p); p.add_(e, alpha=0.1); up = m(x).pow(2).mean()
            p.sub_(e, alpha=0.2)
            down = m(x).pow(2).mean()
            p.add_(e, alpha=0.1)
            p.grad = (up - down) * e
    o.step(); say(up)
"""),
]

ALL = VISION + TEXT + ADVERSARIAL + REINFORCEMENT

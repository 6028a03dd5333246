"""More of programs.py: what PyTorch itself does to a program, and what is built on it."""

from programs import Program

TOOLS = [
    Program("L-BFGS with a closure", 5, """
m, x = nn.Linear(3, 1), torch.randn(8, 3)
o = torch.optim.LBFGS(m.parameters(), max_iter=4)
def closure():
    o.zero_grad()
    loss = (m(x) - x.sum(1, keepdim=True)).pow(2).mean()
    loss.backward()
    return loss
for _ in range(5): say(o.step(closure))
"""),
    Program("accumulated gradients, clipped", 3, """
m = nn.Linear(3, 1)
o = sgd(m)
for i in range(12):
    loss = m(torch.randn(4, 3)).pow(2).mean() / 4
    loss.backward()
    if i % 4 == 3:
        say(nn.utils.clip_grad_norm_(m.parameters(), 1.0), loss)
        o.step()
        o.zero_grad()
"""),
    Program("bfloat16 by autocast", 6, """
m = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
def loss(m, i):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return m(torch.randn(4, 4)).float().pow(2).mean()
fit(m, sgd(m), loss)
"""),
    Program("GradScaler", 6, """
m = nn.Linear(4, 1)
o, scaler = sgd(m), torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
for i in range(6):
    o.zero_grad()
    loss = m(torch.randn(4, 4)).pow(2).mean()
    scaler.scale(loss if i != 2 else loss * math.inf).backward()
    scaler.unscale_(o)
    scaler.step(o)
    scaler.update()
    say(loss, scaler.get_scale())
total(m)
""", ("torch.amp.GradScaler",)),
    Program("schedules and groups of parameters", 6, """
m = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
groups = [{"params": m[0].parameters(), "lr": 0.1}, {"params": m[2].parameters()}]
o = torch.optim.AdamW(groups, lr=0.01)
schedule = torch.optim.lr_scheduler.OneCycleLR(o, [0.1, 0.01], total_steps=10)
def loss(m, i):
    if i: schedule.step()
    return m(torch.randn(4, 4)).pow(2).mean()
fit(m, o, loss)
"""),
    Program("validation between epochs", 6, """
m = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))
o = sgd(m)
for epoch in range(3):
    fit(m.train(), o, lambda m, i: m(torch.randn(4, 4)).pow(2).mean(), 2)
    m.eval()
    with torch.no_grad(): say(*(m(torch.randn(4, 4)).mean() for _ in range(5)))
"""),
    Program("a checkpoint in the middle", 6, """
m = nn.Linear(4, 1)
o, loss, file = adam(m), lambda m, i: m(torch.randn(4, 4)).pow(2).mean(), io.BytesIO()
fit(m, o, loss, 3)
torch.save({"m": m.state_dict(), "o": o.state_dict()}, file)
file.seek(0)
saved = torch.load(file)
m.load_state_dict(saved["m"])
o.load_state_dict(saved["o"])
fit(m, o, loss, 3)
"""),
    Program("a module in a pickle", 2, """
m = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
fit(m, sgd(m), lambda m, i: m(torch.randn(2, 4)).sum(), 1)
import pickle
m = pickle.loads(pickle.dumps(m))
fit(m, sgd(m), lambda m, i: m(torch.randn(2, 4)).sum(), 1)
"""),
    Program("weights that are computed", 6, """
m = nn.Sequential(nn.utils.spectral_norm(nn.Linear(4, 4)), nn.utils.weight_norm(nn.Linear(4, 2)))
nn.utils.parametrize.register_parametrization(m[0], "bias", nn.Softplus())
fit(m, sgd(m), lambda m, i: m(torch.randn(4, 4)).pow(2).mean())
"""),
    Program("pruning", 6, """
from torch.nn.utils import prune
m = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 1))
prune.random_unstructured(m[0], "weight", 0.5)
fit(m, sgd(m), lambda m, i: m(torch.randn(4, 6)).pow(2).mean())
prune.remove(m[0], "weight")
total(m)
"""),
    Program("hooks of the program", 6, """
m, seen = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1)), []
m[0].register_forward_hook(lambda m, i, o: o * 0.5)
m[1].register_forward_pre_hook(lambda m, i: (i[0] + 1,))
m[2].register_full_backward_hook(lambda m, i, o: seen.append(float(o[0].sum())))
m[0].weight.register_hook(lambda g: g.clamp(-0.1, 0.1))
fit(m, sgd(m), lambda m, i: m(torch.randn(4, 4)).pow(2).mean())
say(*seen)
"""),
    Program("a function of its own", 6, """
class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): ctx.save_for_backward(x); return x.round()
    @staticmethod
    def backward(ctx, g): return g * (ctx.saved_tensors[0].abs() < 1)
m = nn.Linear(4, 4)
fit(m, sgd(m), lambda m, i: Round.apply(m(torch.randn(4, 4))).sum())
"""),
    Program("a tensor with a __torch_function__", 6, """
class Logged(torch.Tensor):
    calls = 0
    @classmethod
    def __torch_function__(cls, f, types, args=(), kwargs=None):
        Logged.calls += 1
        return super().__torch_function__(f, types, args, kwargs or {})
m = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
def loss(m, i):
    return m(torch.randn(4, 4).as_subclass(Logged)).as_subclass(torch.Tensor).sum()
fit(m, sgd(m), loss)
say(Logged.calls)
"""),
    Program("as deep as Python goes", None, """
class Deep(nn.Module):
    def __init__(self, n): super().__init__(); self.l, self.n = nn.Linear(2, 2), n
    def forward(self, x, depth): return self.l(x) if depth == 0 else self(x, depth - 1)
m, low, high = Deep(0), 0, 2000
while high - low > 1:  # the deepest that passes
    middle = (low + high) // 2
    try: m(torch.ones(1, 2), middle); low = middle
    except RecursionError: high = middle
say(low > 50)
fit(m, sgd(m), lambda m, i: m(torch.ones(1, 2), low // 2).sum(), 1)
"""),
    Program("two threads that train", None, """
import threading
def train(seed, out):
    g = torch.Generator().manual_seed(seed)
    m = nn.Linear(4, 1)
    with torch.no_grad():
        for p in m.parameters(): p.copy_(torch.randn(p.shape, generator=g))
    o = sgd(m)
    for _ in range(6):
        o.zero_grad()
        loss = m(torch.randn(4, 4, generator=g)).pow(2).mean()
        loss.backward()
        o.step()
        out.append(float(loss))
results = [], []
threads = [threading.Thread(target=train, args=(i, results[i])) for i in range(2)]
for t in threads: t.start()
for t in threads: t.join()
say(*results[0], *results[1])
"""),
    Program("torch.jit.trace", 6, """
m = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
t = torch.jit.trace(m, torch.randn(2, 4))
fit(t, sgd(t), lambda m, i: m(torch.randn(2, 4)).pow(2).mean())
"""),
    Program("torch.jit.script", 6, """
m = torch.jit.script(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)))
fit(m, sgd(m), lambda m, i: m(torch.randn(2, 4)).pow(2).mean())
"""),
    Program("torch.fx", 6, """
m = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)))
fit(m, sgd(m), lambda m, i: m(torch.randn(2, 4)).pow(2).mean())
say(len(m.graph.nodes))
"""),
    Program("torch.func", 6, """
from torch.func import functional_call, grad, vmap
m = nn.Linear(3, 1)
o, names = sgd(m), [n for n, _ in m.named_parameters()]
def one(p, x): return functional_call(m, p, (x,)).pow(2).sum()
for _ in range(6):
    each = vmap(grad(one), in_dims=(None, 0))(dict(m.named_parameters()), torch.randn(4, 3))
    for n, p in m.named_parameters(): p.grad = each[n].mean(0).detach()
    o.step()
    total(m)
""", ("torch.func",)),
    Program("torch.compile with the backend eager", 6, """
m = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
c = torch.compile(m, backend="eager")
fit(c, sgd(m), lambda m, i: m(torch.randn(2, 4)).pow(2).mean())
""", ("torch.compile",)),
    Program("torch.compile with AOTAutograd", 6, """
m = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
c = torch.compile(m, backend="aot_eager")
fit(c, sgd(m), lambda m, i: m(torch.randn(2, 4)).pow(2).mean())
""", ("torch.compile",)),
]

PROCESSES = [
    Program("a loader without workers", 6, """
from torch.utils.data import DataLoader, TensorDataset
m, data = nn.Linear(4, 1), TensorDataset(torch.randn(24, 4))
batches = iter(DataLoader(data, 4, shuffle=True))
fit(m, sgd(m), lambda m, i: m(next(batches)[0]).pow(2).mean())
"""),
] + [
    Program("a loader with workers by " + how, 6, """
from torch.utils.data import DataLoader, TensorDataset
if __name__ == "__main__":
    m, data = nn.Linear(4, 1), TensorDataset(torch.randn(24, 4))
    batches = iter(DataLoader(data, 4, shuffle=True, num_workers=2, multiprocessing_context=%r))
    fit(m, sgd(m), lambda m, i: m(next(batches)[0]).pow(2).mean())
""" % how, (), True)
    for how in ("fork", "spawn")
] + [
    Program(name, None, """
import torch.distributed as dist, torch.multiprocessing as mp
kept = []
def rank(rank, store):
    dist.init_process_group("gloo", "file://" + store, rank=rank, world_size=2)
    torch.manual_seed(rank)
    torch.set_num_threads(1)
    m = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
%s
    o = sgd(m)
    for _ in range(6):
        o.zero_grad()
        loss = m(torch.randn(4, 4)).pow(2).mean()
        loss.backward()
        o.step()
        # gloo's thread may let go of it last, which needs the interpreter: the end of the group,
        # which has that, would wait for the thread for ever (PyTorch 1.13).
        kept.append(loss)
        dist.all_reduce(loss)
        if rank == 0: say(loss)
    dist.destroy_process_group()
if __name__ == "__main__":
    mp.spawn(rank, (os.path.abspath("store"),), 2)
""" % wrap, needs, True)
    for name, wrap, needs in (
        ("DDP of two processes", "    m = nn.parallel.DistributedDataParallel(m)",
         ("torch.distributed.is_gloo_available",)),
        ("FSDP2 of two processes", """
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.device_mesh import init_device_mesh
    mesh = init_device_mesh("cpu", (2,))
    fully_shard(m[0], mesh=mesh); fully_shard(m, mesh=mesh)
""", ("torch.distributed.fsdp.fully_shard",)),
    )
]

FRAMEWORKS = [
    Program("Lightning", 6, """
import logging, warnings
warnings.simplefilter("ignore")
import lightning as L
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
class Model(L.LightningModule):
    def __init__(self): super().__init__(); self.net = nn.Linear(4, 1)
    def training_step(self, batch, i): loss = self.net(batch).pow(2).mean(); say(loss); return loss
    def validation_step(self, batch, i): say(self.net(batch).mean())
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), lr=0.1)
def loader(): return torch.utils.data.DataLoader(torch.randn(12, 4), 4)
trainer = L.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
                    enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Model(), loader(), loader())
""", ("lightning",), True),
    Program("Lightning, accumulating two batches", 3, """
import logging, warnings
warnings.simplefilter("ignore")
import lightning as L
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
class Model(L.LightningModule):
    def __init__(self): super().__init__(); self.net = nn.Linear(4, 1)
    def training_step(self, batch, i): loss = self.net(batch).pow(2).mean(); say(loss); return loss
    def configure_optimizers(self): return torch.optim.Adam(self.parameters(), lr=0.1)
trainer = L.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
                    enable_progress_bar=False, enable_model_summary=False,
                    accumulate_grad_batches=2)
trainer.fit(Model(), torch.utils.data.DataLoader(torch.randn(24, 4), 4))
""", ("lightning",), True),
    Program("Accelerate, accumulating two batches", 3, """
from accelerate import Accelerator
a = Accelerator(cpu=True, gradient_accumulation_steps=2)
m = nn.Linear(4, 1)
m, o, data = a.prepare(m, adam(m), torch.utils.data.DataLoader(torch.randn(24, 4), 4))
for batch in data:
    with a.accumulate(m):
        loss = m(batch).pow(2).mean()
        a.backward(loss)
        o.step()
        o.zero_grad()
        say(loss)
""", ("accelerate",), True),
    Program("Trainer of Hugging Face", 4, """
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
from transformers import TrainerCallback
config = BertConfig(vocab_size=30, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
                    intermediate_size=16, max_position_embeddings=16)
data = [{"input_ids": torch.randint(0, 30, (6,)), "labels": torch.tensor(i % 2)} for i in range(16)]
arguments = TrainingArguments("out", max_steps=4, per_device_train_batch_size=2, report_to=[],
                              gradient_accumulation_steps=2, use_cpu=True, disable_tqdm=True,
                              save_strategy="no", logging_strategy="no", seed=1)
model = BertForSequenceClassification(config)
Trainer(model=model, args=arguments, train_dataset=data).train()
total(model)
""", ("transformers", "accelerate"), True),
] + [
    # Without its own all-reduce between processes of one machine, which it would compile, and
    # without the processes that wait to compile for torch.compile.
    Program("DeepSpeed, ZeRO-%d, accumulating two batches" % stage, 6, """
os.environ.update(DS_ACCELERATOR="cpu", RANK="0", LOCAL_RANK="0", WORLD_SIZE="1",
                  TORCHINDUCTOR_COMPILE_THREADS="1")
import deepspeed, deepspeed.comm.torch
deepspeed.comm.torch.build_shm_op = lambda: None
deepspeed.init_distributed("gloo", init_method="file://" + os.path.abspath("store"), rank=0,
                           world_size=1, auto_mpi_discovery=False, verbose=False)
m = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
config = {"train_batch_size": 8, "train_micro_batch_size_per_gpu": 4,
          "gradient_accumulation_steps": 2, "zero_allow_untested_optimizer": True,
          "zero_optimization": {"stage": %d}}
engine = deepspeed.initialize(model=m, optimizer=adam(m), config=config)[0]
for i in range(12):
    loss = engine(torch.randn(4, 4)).pow(2).mean()
    engine.backward(loss)
    engine.step()
    say(loss.detach())
""" % stage, ("deepspeed",), True)
    for stage in (0, 1, 2, 3)
]

ALL = TOOLS + PROCESSES + FRAMEWORKS

"""A small training run on GPU 0: prints its steps a second, warm-up left out, and the first and
last loss."""
import os
import sys
import time

import torch

torch.manual_seed(1)
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 300
net = torch.nn.Sequential(*[layer for _ in range(6)
                            for layer in (torch.nn.Linear(2048, 2048), torch.nn.GELU())]).cuda()
optimiser = torch.optim.AdamW(net.parameters(), lr=1e-3)
data = torch.randn(64, 512, 2048)


def step(i):
    x = data[i % 64].cuda(non_blocking=True)
    loss = ((net(x) - x) ** 2).mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    return loss


first = step(0).item()
for i in range(30):
    step(i)
torch.cuda.synchronize()
begin = time.perf_counter()
for i in range(steps):
    last = step(i)
torch.cuda.synchronize()
seconds = time.perf_counter() - begin
print(f"{steps / seconds:.2f} {first:.6f} {last.item():.6f} {torch.cuda.device_count()} "
      f"{os.getpid()}")

"""Recordings as the PyTorch profiler writes them, of any size: what a question costs by the number of events, lanes
and ranks. Times and names are made up; their pattern is that of training, one product and one elementwise kernel in turn."""

import gzip

KERNELS_A_STEP = 1000
# Of a kernel: its operator, its launch, itself.
EVENTS_A_KERNEL = 3
LENGTH, PACE = 12, 10  # us, of a kernel and from launch to launch
PRODUCT = "ampere_sgemm_128x64_tn"
ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float> >(int)"


def event(cat, name, pid, tid, begin, length, args):
    return (
        f'{{"ph":"X","cat":"{cat}","name":"{name}","pid":{pid},"tid":{tid},"ts":{begin},"dur":{length},'
        f'"args":{{{args}}}}}'
    )


def kernel(number, begin, stream, starts):
    product = number % 2 == 0
    op, name = ("aten::mm", PRODUCT) if product else ("aten::add", ELEMENTWISE)
    dims = "[[256,256],[256,256]]" if product else "[[512,512],[512,512]]"
    ids = f'"External id":{number},"correlation":{number}'
    shapes = f'"External id":{number},"Input Dims":{dims},"Input type":["float","float"]'
    return [
        event("cpu_op", op, 1, 1, begin, 8, shapes),
        event("cuda_runtime", "cudaLaunchKernel", 1, 1, begin + 2, 4, ids),
        event("kernel", name, 0, stream, starts, LENGTH, f'{ids},"device":0,"stream":{stream}'),
    ]


def training(path, events, streams=1):
    """Steps that wait for the GPU at their ends; its kernels take longer than their launches."""
    steps = max(4, events // (EVENTS_A_KERNEL * KERNELS_A_STEP))
    per_step = events // (EVENTS_A_KERNEL * steps)
    number, at = 1, 100
    ends = [0] * streams
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write(
            '{"deviceProperties":[{"id":0,"name":"NVIDIA A100-SXM4-40GB"}],"traceEvents":[\n'
        )
        for step in range(steps):
            rows, begin = [], at
            for _ in range(per_step):
                stream = number % streams
                starts = max(at + 12, ends[stream] + 1)
                ends[stream] = starts + LENGTH
                rows += kernel(number, at, 7 + stream, starts)
                number, at = number + 1, at + PACE
            length = max(ends) + 5 - at
            wait = event("cuda_runtime", "cudaDeviceSynchronize", 1, 1, at, length, f'"correlation":{number}')
            number, at = number + 1, at + length + 15
            mark = event("user_annotation", f"ProfilerStep#{step}", 1, 1, begin, at - begin - 2, "")
            file.write(",\n".join([mark, *rows, wait]) + (",\n" if step < steps - 1 else "]}\n"))


def streams(path, count, launches=6):
    """So many launches without operators on each of many streams, in turn."""
    number, at = 1, 100
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write('{"traceEvents":[\n')
        for _ in range(launches):
            rows, begin = [], at
            for stream in range(count):
                rows += kernel(number, at, 7 + stream, at + 12)[1:]
                number, at = number + 1, at + PACE
            rows.append(event("cuda_runtime", "cudaDeviceSynchronize", 1, 1, at, 40, f'"correlation":{number}'))
            number, at = number + 1, at + 60
            rows.append(event("user_annotation", f"ProfilerStep#{begin}", 1, 1, begin, at - begin - 2, ""))
            file.write(",\n".join(rows) + ",\n")
        file.write(event("cuda_runtime", "cudaDeviceSynchronize", 1, 1, at, 5, f'"correlation":{number}') + "]}\n")


def rank(path, number, ranks, kernels):
    """One of `ranks` that meet in an all-reduce each 100 kernels; some are slower."""
    pace = 20 + number % 8
    slowest = 20 + min(ranks - 1, 7)
    rows = []
    for i in range(kernels):
        meets = i % 100 == 99
        ids = f'"External id":{i + 1},"correlation":{i + 1}'
        at = i * pace + number  # no two ranks hold the same events
        rows.append(event("cuda_runtime", "cudaLaunchKernel", 1, 1, at, 6, ids))
        begin = at + 8
        end = i * slowest + 700 if meets else begin + 8
        group = (
            ',"Collective name":"allreduce","In msg nelems":33554432,"Out msg nelems":33554432,"dtype":"Half",'
            f'"Group size":{ranks},"Process Group Name":"0","Seq":{i // 100}'
        )
        name = "ncclDevKernel_AllReduce_Sum_f16_RING_LL" if meets else PRODUCT
        stream = 20 if meets else 7
        args = f'{ids},"device":0,"stream":{stream}{group if meets else ""}'
        rows.append(event("kernel", name, 0, stream, begin, end - begin, args))
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write(
            f'{{"distributedInfo":{{"backend":"nccl","rank":{number},"world_size":{ranks}}},"traceEvents":[\n'
        )
        file.write(",\n".join(rows) + "]}\n")

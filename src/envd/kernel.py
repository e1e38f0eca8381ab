"""The Python of a sandbox's code interpreter. In: code, in frames on descriptor 3. Out: what it
prints, displays and raises, as frames of one line of JSON each; an empty frame ends an execution.
It runs in the sandbox with its rights, and believes and protects nothing.

The first process is a zygote: it imports what shall be there at once, waits for messages with the
descriptor of a new kernel, and forks. So a kernel begins in a millisecond, whatever is imported.
"""
import sys
sys.path[:] = [p for p in sys.path if p]  # what lies in the directory is for the user's code alone
import array, ast, base64, builtins, json, linecache, os, re, select, signal, socket, struct
import textwrap, threading, time, traceback, types

FLUSH_S = 0.02  # what is printed within that time is one message
OUTPUT_MOST = 65536
KEYS = {
    "text/plain": "text", "text/html": "html", "text/markdown": "markdown",
    "image/svg+xml": "svg", "image/png": "png", "image/jpeg": "jpeg", "application/pdf": "pdf",
    "text/latex": "latex", "application/json": "json", "application/javascript": "javascript",
    "e2b/data": "data", "e2b/chart": "chart",
}
METHODS = {
    "_repr_html_": "text/html", "_repr_markdown_": "text/markdown", "_repr_svg_": "image/svg+xml",
    "_repr_png_": "image/png", "_repr_jpeg_": "image/jpeg", "_repr_pdf_": "application/pdf",
    "_repr_latex_": "text/latex", "_repr_json_": "application/json",
    "_repr_javascript_": "application/javascript", "_repr_e2b_data_": "e2b/data",
    "_repr_e2b_chart_": "e2b/chart",
}
kernel = None
charts_source = ""


def clean(value):
    """As JSON can have it: no NaN, no infinity, and text for what it does not know."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if isinstance(value, dict):
        return {str(k): clean(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [clean(v) for v in value]
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "tolist"):  # a number or an array of numpy
        return clean(value.tolist())
    return str(value)


class Channel:
    def __init__(self, fd):
        self.fd, self.lock = fd, threading.Lock()
        os.set_inheritable(fd, False)

    def write(self, data):
        with self.lock:
            while data and os.getpid() == kernel.pid:  # a child of the user's code says nothing
                data = data[os.write(self.fd, data):]

    def send(self, message):
        line = json.dumps(message).encode() + b"\n"
        self.write(struct.pack("<I", len(line)) + line)

    def end(self):
        self.write(bytes(4))

    def exactly(self, n):
        parts = []
        while n:
            part = os.read(self.fd, min(n, 1 << 20))
            if not part:
                os._exit(0)
            parts.append(part)
            n -= len(part)
        return b"".join(parts)

    def receive(self):
        return json.loads(self.exactly(struct.unpack("<I", self.exactly(4))[0]))


class Bytes:
    """What sys.stdout.buffer is."""

    def __init__(self, output):
        self.output = output

    def write(self, data):
        self.output.write(bytes(data).decode("utf-8", "replace"))
        return len(data)

    def flush(self):
        self.output.flush()


class Output:
    """sys.stdout, or sys.stderr. Gathers what is written within a moment."""
    encoding, errors, mode, closed = "utf-8", "replace", "w", False
    line_buffering = True

    def __init__(self, name, fd):
        self.name, self.fd = name, fd
        self.parts, self.size, self.lock = [], 0, threading.Lock()
        self.buffer = Bytes(self)

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if os.getpid() != kernel.pid:  # a child that the user's code has forked
            os.write(self.fd, text.encode("utf-8", "replace"))
            return len(text)
        with self.lock:
            first = not self.parts
            self.parts.append(text)
            self.size += len(text)
        if self.size > OUTPUT_MOST:
            self.flush()
        elif first:
            kernel.wake()
        return len(text)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def flush(self):
        with self.lock:
            text, self.parts, self.size = "".join(self.parts), [], 0
        if text and os.getpid() == kernel.pid:
            kernel.printed(self.name, text)

    def fileno(self):
        return self.fd

    def isatty(self):
        return False

    def readable(self):
        return False

    seekable = readable

    def writable(self):
        return True

    def close(self):
        pass

    def reconfigure(self, **options):
        pass


class Pipe:
    """What the kernel's descriptor 1 or 2 leads to: what its subprocesses and its C code print."""

    def __init__(self, name, fd):
        self.name, self.lock, self.rest = name, threading.Lock(), b""
        self.read_fd, write_fd = os.pipe()
        os.dup2(write_fd, fd)
        os.close(write_fd)
        os.set_blocking(self.read_fd, False)

    def drain(self):
        with self.lock:
            while True:
                try:
                    data = os.read(self.read_fd, 65536)
                except BlockingIOError:
                    return
                if not data:
                    return
                data = self.rest + data
                self.rest = b""
                for back in range(1, min(4, len(data) + 1)):  # half of a character waits
                    if data[-back] >= 0xc0:
                        need = 2 if data[-back] < 0xe0 else 3 if data[-back] < 0xf0 else 4
                        if need > back:
                            data, self.rest = data[:-back], data[-back:]
                        break
                kernel.printed(self.name, data.decode("utf-8", "replace"))


# -- what is displayed


def text_of(value):
    text = repr(value)
    if len(text) > 80 and isinstance(value, (dict, list, tuple, set)):
        import pprint
        text = pprint.pformat(value, sort_dicts=False)
    if len(text) > 1 and text[0] == text[-1] == "'":
        text = text[1:-1]
    return text


def is_kind(value, module, name):
    return any(k.__name__ == name and k.__module__.startswith(module) for k in type(value).__mro__)


def charts():
    """The functions for matplotlib's figures, compiled when the first one is there."""
    if "figure_chart" not in globals():
        exec(compile(charts_source, "<charts>", "exec"), globals())
    return globals()


def add_own(value, bundle):
    """What this kernel makes of kinds that it knows."""
    if is_kind(value, "pandas", "DataFrame"):
        bundle["e2b/data"] = clean(value.to_dict(orient="list"))
    elif is_kind(value, "matplotlib", "Figure"):
        bundle["image/png"] = charts()["figure_png"](value)
        try:
            bundle["e2b/chart"] = clean(charts()["figure_chart"](value))
        except Exception:  # a figure of another kind is an image, no more
            pass


def bundle_of(value):
    bundle = {}
    if isinstance(value, type):
        return {"text/plain": text_of(value)}
    for name, mime in METHODS.items():
        method = getattr(value, name, None)
        if not callable(method):
            continue
        try:
            made = method()
        except Exception:
            continue
        made = made[0] if isinstance(made, tuple) else made
        if made is not None:
            bundle[mime] = made
    method = getattr(value, "_repr_mimebundle_", None)
    if callable(method):
        try:
            made = method()
            made = made[0] if isinstance(made, tuple) else made
            bundle.update(made or {})
        except Exception:
            pass
    add_own(value, bundle)
    if "text/plain" not in bundle:
        bundle["text/plain"] = text_of(value)
    return bundle


def send_bundle(bundle, main):
    message, extra = {"type": "result", "is_main_result": main}, {}
    for mime, value in bundle.items():
        if isinstance(value, (bytes, bytearray)):
            value = base64.b64encode(value).decode()
        if mime in KEYS:
            message[KEYS[mime]] = clean(value)
        else:
            extra[mime] = clean(value)
    if extra:
        message["extra"] = extra
    kernel.drain()
    if kernel.running:
        kernel.channel.send(message)


def display(*values, raw=False, **options):
    for value in values:
        send_bundle(dict(value) if raw else bundle_of(value), False)


def publish_display_data(data, metadata=None, **options):
    send_bundle(dict(data), False)


def show_figures():
    pyplot = sys.modules.get("matplotlib.pyplot")
    if not pyplot:
        return
    try:
        for number in pyplot.get_fignums():
            display(pyplot.figure(number))
    finally:
        pyplot.close("all")


# -- stand-ins for modules of IPython, where that is not installed


def shown(mime, as_bytes=False):
    class Shown:
        def __init__(self, data=None, url=None, filename=None, **options):
            if filename:
                with open(filename, "rb" if as_bytes else "r") as f:
                    data = f.read()
            self.data, self.url = data, url

        def _repr_mimebundle_(self, **options):
            return {mime: self.data, "text/plain": repr(self)}

        def __repr__(self):
            return f"<IPython.core.display.{type(self).__name__} object>"
    return Shown


def ipython_display():
    kinds = {"HTML": "text/html", "Markdown": "text/markdown", "Latex": "text/latex",
             "Math": "text/latex", "SVG": "image/svg+xml", "JSON": "application/json",
             "Javascript": "application/javascript", "Pretty": "text/plain"}
    made = {name: shown(mime) for name, mime in kinds.items()}
    png, jpeg = shown("image/png", True), shown("image/jpeg", True)
    png.__name__ = jpeg.__name__ = "Image"

    def image(data=None, filename=None, format=None, **options):
        jpg = format in ("jpg", "jpeg") or str(filename or "").lower().endswith((".jpg", ".jpeg"))
        jpg = jpg or isinstance(data, bytes) and data[:2] == b"\xff\xd8"
        return (jpeg if jpg else png)(data, filename=filename)
    for name, kind in made.items():
        kind.__name__ = kind.__qualname__ = name
    return dict(made, Image=image, display=display, clear_output=lambda wait=False: None,
                publish_display_data=publish_display_data)


class Shell:
    """What get_ipython() answers."""
    user_ns = property(lambda self: kernel.names)

    def run_line_magic(self, name, line, **options):
        return magic(name, line)

    def run_cell_magic(self, name, line, cell):
        return cell_magic(name, line, cell)

    magic = run_line_magic

    def system(self, command):
        return shell(command)

    getoutput = staticmethod(lambda command: capture(command))

    def __getattr__(self, name):
        raise AttributeError(f"this interpreter's get_ipython() has no {name}")


SHELL = Shell()


def get_ipython():
    return SHELL


def backend():
    from matplotlib.backend_bases import FigureManagerBase
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    return {"FigureCanvas": FigureCanvasAgg, "FigureManager": FigureManagerBase,
            "show": lambda *args, **options: show_figures()}


SHIMS = {
    "ward_figures": backend,
    "IPython": lambda: {"get_ipython": get_ipython, "__path__": [], "version_info": (8, 0, 0),
                        "display": __import__("importlib").import_module("IPython.display"),
                        "__version__": "8.0.0"},
    "IPython.core": lambda: {"__path__": []},
    "IPython.core.display": ipython_display,
    "IPython.core.getipython": lambda: {"get_ipython": get_ipython},
    "IPython.display": ipython_display,
}


class Finder:
    """Finds the stand-ins; where IPython is installed, only its way of displaying is replaced."""
    real = None

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name not in SHIMS:
            return None
        from importlib.machinery import PathFinder, ModuleSpec
        if cls.real is None:
            cls.real = PathFinder.find_spec("IPython") is not None
        if name == "ward_figures" or not cls.real:
            spec = ModuleSpec(name, cls, is_package=name in ("IPython", "IPython.core"))
            return spec
        spec = PathFinder.find_spec(name, path)
        if spec and name in ("IPython.display", "IPython.core.getipython"):
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                for key in ("display", "publish_display_data", "get_ipython"):
                    if hasattr(module, key):
                        setattr(module, key, globals()[key])
            spec.loader.exec_module = exec_module
        return spec

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        module.__dict__.update(SHIMS[module.__name__]())


# -- lines of the shell and of IPython


def shell(command):
    """!COMMAND: with the kernel's descriptors, so what it prints is printed here."""
    import subprocess
    for stream in (sys.__stdout__, sys.__stderr__):
        stream.flush()
    program = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
    code = subprocess.run([program, "-c", command], stdin=subprocess.DEVNULL).returncode
    kernel.drain()
    kernel.names["_exit_code"] = code


def capture(command):
    import subprocess
    done = subprocess.run(command, shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    return done.stdout.decode("utf-8", "replace").splitlines()


def magic(name, line=""):
    if name == "pip":
        import shlex
        return shell(f"{shlex.quote(sys.executable)} -m pip {line}")
    if name == "cd":
        os.chdir(os.path.expanduser(line.strip() or "~"))
    elif name in ("env", "set_env"):
        key, _, value = line.strip().partition("=")
        if key and "=" in line:
            os.environ[key.strip()] = value.strip()
        else:
            return os.environ.get(key) if key else dict(os.environ)
    elif name == "pwd":
        return os.getcwd()
    elif name in ("time", "timeit"):
        begin = time.perf_counter()
        value = eval(compile(line.strip(), "<time>", "eval"), kernel.names)
        print(f"Wall time: {(time.perf_counter() - begin) * 1000:.3g} ms")
        return value
    elif name not in ("matplotlib", "config", "autoreload", "load_ext", "reload_ext"):
        raise NameError(f"this interpreter has no %{name}")
    return None


def cell_magic(name, line, cell):
    if name in ("bash", "sh", "shell"):
        return shell(cell)
    if name in ("capture", "time", "timeit"):
        return kernel.run(cell)
    if name == "writefile":
        with open(os.path.expanduser(line.strip()), "w") as f:
            f.write(cell)
        return None
    raise NameError(f"this interpreter has no %%{name}")


LINE = re.compile(r"^(\s*)(?:([\w, ]+?)\s*=\s*)?([!%])(\S.*)$")


def plain(code):
    """Code with lines of the shell and of IPython as plain Python."""
    first, _, rest = code.lstrip("\n").partition("\n")
    if first.startswith("%%"):
        name, _, line = first[2:].partition(" ")
        return f"get_ipython().run_cell_magic({name!r}, {line!r}, {rest!r})"
    out = []
    for text in code.split("\n"):
        m = LINE.match(text)
        if not m:
            out.append(text)
            continue
        space, target, mark, what = m.groups()
        if mark == "!":
            call = f"get_ipython().{'getoutput' if target else 'system'}({what.lstrip('!')!r})"
        else:
            name, _, line = what.partition(" ")
            call = f"get_ipython().run_line_magic({name!r}, {line!r})"
        out.append(f"{space}{target + ' = ' if target else ''}{call}")
    return "\n".join(out)


# -- the kernel


class Kernel:
    def __init__(self, channel, request):
        self.pid, self.channel, self.count, self.running = os.getpid(), channel, 0, False
        self.base, self.loop = {}, None
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main
        self.names = main.__dict__
        self.names.update(__builtins__=builtins, display=display, get_ipython=get_ipython)
        self.warnings = [request["warning"]] if request.get("warning") else []
        self.pipes = [Pipe("stdout", 1), Pipe("stderr", 2)]
        self.wake_fd, self.woken_fd = os.pipe()[::-1]

    def begin(self, request):
        sys.stdout = sys.__stdout__ = Output("stdout", 1)
        sys.stderr = sys.__stderr__ = Output("stderr", 2)
        sys.path.insert(0, "")
        sys.meta_path.insert(0, Finder)
        self.set_base(request.get("env") or {})
        os.environ.setdefault("MPLBACKEND", "module://ward_figures")
        try:
            os.chdir(request["cwd"])
        except OSError as e:
            self.warnings.append(f"cannot enter {request['cwd']}: {e.strerror}\n")
        threading.Thread(target=self.watch, daemon=True).start()

    def wake(self):
        os.write(self.wake_fd, b"x")

    def watch(self):
        """Passes on what is printed, also while the code goes on."""
        poll = select.poll()
        for fd in (self.woken_fd, *(p.read_fd for p in self.pipes)):
            poll.register(fd, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == self.woken_fd:
                    os.read(fd, 4096)
            time.sleep(FLUSH_S)
            self.drain()

    def drain(self):
        for stream in (sys.__stdout__, sys.__stderr__):
            stream.flush()
        for pipe in self.pipes:
            pipe.drain()

    def printed(self, name, text):
        if self.running:
            self.channel.send({"type": name, "text": text, "timestamp": time.time_ns()})

    def set_base(self, env):
        """The sandbox's variables, which may change while the kernel runs."""
        for name in self.base.keys() - env.keys():
            os.environ.pop(name, None)
        os.environ.update(env)
        self.base = dict(env)

    def parse(self, code):
        code = textwrap.dedent(code) if code.lstrip("\n")[:1] in (" ", "\t") else code
        name = f"<cell {self.count}>"
        try:
            tree = ast.parse(code, name)
        except SyntaxError:
            other = plain(code)
            if other == code:
                raise
            code = other
            tree = ast.parse(code, name)
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        return name, tree, code.rstrip().endswith(";")

    def evaluate(self, tree, name, mode):
        compiled = compile(tree, name, mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        value = eval(compiled, self.names)
        if compiled.co_flags & 0x80:  # a coroutine: there is an await
            import asyncio
            if not self.loop:
                self.loop = asyncio.new_event_loop()
                asyncio.set_event_loop(self.loop)
            value = self.loop.run_until_complete(value)
        return value

    def run(self, code):
        name, tree, silent = self.parse(code)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        if tree.body:
            self.evaluate(tree, name, "exec")
        if not last:
            return
        value = self.evaluate(ast.Expression(last.value), name, "eval")
        if value is not None and not silent:
            self.names["_"] = value
            send_bundle(bundle_of(value), True)

    def report(self, error):
        trace = error.__traceback__
        while trace and not trace.tb_frame.f_code.co_filename.startswith("<cell "):
            trace = trace.tb_next
        lines = traceback.format_exception(type(error), error, trace)
        self.drain()
        self.channel.send({"type": "error", "name": type(error).__name__, "value": str(error),
                           "traceback": "".join(lines)})

    def guarded(self, code):
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self.run(code)
            show_figures()
        except BaseException as error:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            if os.getpid() != self.pid:
                raise
            self.report(error)
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def execute(self, request):
        if "base" in request:
            self.set_base(request["base"])
        env = request.get("env") or {}
        before = {name: os.environ.get(name) for name in env}
        os.environ.update(env)
        self.count += 1
        self.running = True
        self.channel.send({"type": "number_of_executions", "execution_count": self.count})
        for text in self.warnings:
            self.printed("stderr", text)
        self.warnings = []
        self.guarded(request["code"])
        self.drain()
        self.running = False
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self.channel.send({"type": "end_of_execution"})
        self.channel.end()


def run_kernel(fd, request):
    global kernel
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    kernel = Kernel(Channel(fd), request)
    kernel.begin(request)
    for name in ("random", "numpy.random"):  # forks must not draw the same numbers
        if name in sys.modules:
            sys.modules[name].seed()
    while True:
        request = kernel.channel.receive()
        try:
            kernel.execute(request)
        finally:
            if os.getpid() != kernel.pid:  # a forked child of the user's code ends here
                os._exit(0)


def preload(names):
    wrong = []
    for name in names:
        try:
            __import__(name)
        except Exception as e:
            wrong.append(f"cannot preload {name}: {e}\n")
    return "".join(wrong)


def zygote(fd, modules):
    """Forks a kernel for each message, which has its descriptor; answers with its process id."""
    os.environ.setdefault("MPLBACKEND", "module://ward_figures")
    warning = preload(modules)
    channel = socket.socket(fileno=fd)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, fds, _, _ = socket.recv_fds(channel, 1 << 17, 4)
        if not message:
            os._exit(0)
        request = dict(json.loads(message), warning=warning)
        pid = os.fork()
        if pid == 0:
            os.setsid()
            channel.close()
            run_kernel(fds[0], request)
        os.close(fds[0])
        channel.send(array.array("i", [pid]).tobytes())


def begin():
    global charts_source
    charts_source = KERNEL_CHARTS
    os.set_inheritable(3, False)
    zygote(3, [name for name in KERNEL_MODULES.split(",") if name])

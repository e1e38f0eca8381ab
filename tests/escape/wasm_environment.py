"""A module looks for what the caller did not mean for it: variables of the caller, the words and
variables of the runtime, and what stands beside its arguments in memory.

layer: environment
control: the same C as a program without a sandbox has the caller's variables
"""
WASM = r"""
extern char **environ;
int main(int argc, char **argv)
{
	began();
	for (char **e = environ; e && *e; e++)
		puts(*e);
	for (int i = 0; i < argc; i++)
		puts(argv[i]);
	show("/proc/self/environ");
	show("/proc/self/cmdline");
	show("/proc/1/environ");
#ifdef __wasi__
	for (unsigned page = 0; page < __builtin_wasm_memory_size(0);
	     page++) /* everything that it can address */
		for (const char *p = (const char *)(page << 16), *end = p + 65536; p < end; p++)
			if (p[0] == 'M' && p[1] == 'A' && p[2] == 'R' && p[3] == 'K' && p[4] == '=')
				puts(p);
#endif
	return 0;
}
"""


def scene(s):
    s.env = {"SECRET_OF_THE_CALLER": "MARK=" + s.token}

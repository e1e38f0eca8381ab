"""Takes the memory for translated filters, which all users of the machine share: where it is used
up no other unprivileged program can put a system call filter on, no sandbox starts.

layer: seccomp
control: without a sandbox a filter of 4,096 instructions hangs on each socket
"""
from harness.kernel_memory import PRELUDE

ENGINES = ("native", "oci")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"
C = PRELUDE + r"""
#include <linux/filter.h>
#include <sys/socket.h>
int main(void)
{
	static struct sock_filter code[4096];
	struct sock_fprog program = { 4096, code };
	static const int names[] = { 26, 51 };	/* SO_ATTACH_FILTER, SO_ATTACH_REUSEPORT_CBPF */
	int attached = 0;

	began();
	for (int i = 0; i < 4096; i++)
		code[i] = (struct sock_filter)BPF_STMT(
			i < 4095 ? BPF_ALU | BPF_ADD | BPF_K : BPF_RET | BPF_K, 0x12345678);
	for (int i = 0; i < 200; i++) {
		int fd = socket(AF_INET, SOCK_DGRAM, 0), one = 1;

		setsockopt(fd, SOL_SOCKET, 15, &one, sizeof(one));	/* SO_REUSEPORT */
		attached +=
			setsockopt(fd, SOL_SOCKET, names[i % 2], &program, sizeof(program)) == 0;
	}
	printf("attached: %d\n", attached);
	return 0;
}
"""


def escaped(_scene, r):
    return "attached:" in r.out and int(r.out.split("attached:")[1].split()[0]) > 0

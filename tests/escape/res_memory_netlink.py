"""Hides memory from its limit in the answers of the kernel that wait unread in netlink sockets,
which no cgroup counts.

layer: limits (watch)
control: without a sandbox it gets it
"""
from harness.kernel_memory import ENGINES, ENGINES_WHY, OPTIONS, PRELUDE, escaped

C = PRELUDE + r"""
#include <linux/netlink.h>
#include <sys/socket.h>
int main(void)
{
	static char bad[60000];
	struct nlmsghdr *head = (struct nlmsghdr *)bad;
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	int more = 1;

	began();
	*head = (struct nlmsghdr){ .nlmsg_len = sizeof(bad),
				   .nlmsg_type = 0xfff0,
				   .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK };
	while (more) {
		int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

		if (fd < 0)
			break;
		for (int i = 0; i < 3 && more; i++) {	/* each comes back with the error */
			if (sendto(fd, bad, sizeof(bad), MSG_DONTWAIT, (struct sockaddr *)&kernel,
				   sizeof(kernel)) < 0)
				break;
			more = held(sizeof(bad));
		}
	}
	return done();
}
"""
__all__ = ["ENGINES", "ENGINES_WHY", "OPTIONS", "escaped"]

/* The small readers of the gateway: the hosts file, packets that were refused, the log's messages
 * around them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <string.h>

#include "gateway/hosts.h"
#include "gateway/packet.h"

static size_t find(const char *text, const char *name, struct ip *ret)
{
	struct host host;

	assert_int_equal(host_read(name, strlen(name), &host), HOST_FINE);
	return hosts_find(text, strlen(text), &host, ret, 2);
}

static void test_hosts(void **state)
{
	static const char text[] = "127.0.0.1\tlocalhost  # loop.test\n"
				   "\t 192.0.2.1 One.Test. two.test\r\n"
				   "2001:db8::1 two.test\n"
				   "nonsense two.test\n0x7f.1 two.test\n"
				   "#192.0.2.9 three.test\n"
				   "192.0.2.3 two.test\n192.0.2.4";
	struct ip ips[2];
	char out[HOST_TEXT];

	(void)state;
	assert_int_equal(find(text, "one.test", ips), 1);
	assert_string_equal(ip_text(&ips[0], out), "192.0.2.1");
	assert_int_equal(find(text, "TWO.test", ips), 2);
	assert_string_equal(ip_text(&ips[1], out), "2001:db8::1");
	assert_int_equal(find(text, "loop.test", ips), 0);
	assert_int_equal(find(text, "three.test", ips), 0);
	assert_int_equal(find("", "a", ips), 0);
	assert_int_equal(find("\n\n#\n 1.2.3.4", "a", ips), 0);
}

static void test_packet(void **state)
{
	uint8_t v4[28] = { 0x45, [9] = IPPROTO_TCP, [16] = 203, 0, 113, 5, [22] = 1, [23] = 187 };
	uint8_t v6[48] = { 0x60, [6] = IPPROTO_UDP, [24] = 0x20, 0x01, 0x0d,
			   0xb8, [39] = 1,          [43] = 53 };
	struct packet p;
	char out[HOST_TEXT];

	(void)state;
	assert_true(packet_read(v4, sizeof(v4), &p));
	assert_int_equal(p.protocol, IPPROTO_TCP);
	assert_int_equal(p.port, 443);
	assert_string_equal(ip_text(&p.to, out), "203.0.113.5");
	assert_true(packet_read(v4, 20, &p)); /* cut off behind the header */
	assert_int_equal(p.port, 0);
	v4[7] = 1; /* a later piece has no ports */
	assert_true(packet_read(v4, sizeof(v4), &p));
	assert_int_equal(p.port, 0);
	assert_true(packet_read(v6, sizeof(v6), &p));
	assert_int_equal(p.port, 53);
	assert_string_equal(ip_text(&p.to, out), "2001:db8::1");
	assert_false(packet_read(v4, 19, &p));
	assert_false(packet_read(v6, 39, &p));
	assert_false(packet_read((const uint8_t *)"", 0, &p));
}

static void test_logged(void **state)
{
	struct {
		struct nlmsghdr header;
		struct nfgenmsg family;
		struct nlattr first;
		uint32_t number;
		struct nlattr payload;
		uint8_t bytes[8];
		struct nlmsghdr done;
	} m = { .header = { .nlmsg_len = 16 + 4 + 8 + 4 + 5,
			    .nlmsg_type = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET },
		.first = { .nla_len = 8, .nla_type = NFULA_PACKET_HDR },
		.payload = { .nla_len = 9, .nla_type = NFULA_PAYLOAD },
		.bytes = "12345",
		.done = { .nlmsg_len = 16, .nlmsg_type = NLMSG_DONE } };
	const uint8_t *at = (const uint8_t *)&m, *packet = NULL;
	size_t n = sizeof(m), len;

	(void)state;
	assert_true(packet_logged(&at, &n, &packet, &len));
	assert_int_equal(len, 5);
	assert_memory_equal(packet, "12345", 5);
	assert_true(packet_logged(&at, &n, &packet, &len));
	assert_int_equal(len, 0);
	assert_int_equal(n, 0);
	assert_false(packet_logged(&at, &n, &packet, &len));
	m.payload.nla_len = 200; /* longer than its message */
	at = (const uint8_t *)&m;
	n = sizeof(m);
	assert_true(packet_logged(&at, &n, &packet, &len));
	assert_int_equal(len, 0);
	m.header.nlmsg_len = 1000;
	at = (const uint8_t *)&m;
	n = sizeof(m);
	assert_false(packet_logged(&at, &n, &packet, &len));
}

static void test_settings(void **state)
{
	static const struct {
		const char *text, *servers;
	} cases[] = {
		{ "nameserver 192.0.2.1\n", "192.0.2.1" },
		{ "# c\nsearch a b\nnameserver\t2001:db8::1 # x\nnameserver 192.0.2.1",
		  "2001:db8::1,192.0.2.1" },
		{ "nameserver 1.1.1.1\nnameserver 1.1.1.2\nnameserver 1.1.1.3\nnameserver "
		  "1.1.1.4\n",
		  "1.1.1.1,1.1.1.2,1.1.1.3" },
		{ "", "127.0.0.1" },
		{ "nameserver\nnameserver \nnameservers 1.1.1.1\nnameserver "
		  "fe80::1%eth0\nnameserver dns.example\n",
		  "127.0.0.1" },
		{ "nameserver 1.1.1.1,evil\noptions x", "127.0.0.1" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_buf out = { 0 };

		settings_servers(cases[i].text, strlen(cases[i].text), &out);
		assert_string_equal(buf_text(&out), cases[i].servers);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_settings),
					    cmocka_unit_test(test_hosts),
					    cmocka_unit_test(test_packet),
					    cmocka_unit_test(test_logged) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

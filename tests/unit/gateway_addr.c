/* Classes of addresses: both ends of every block and their neighbours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "rules/address.h"

static struct ip ip_of(const char *text)
{
	struct host h;

	assert_int_equal(host_read(text, strlen(text), &h), HOST_FINE);
	assert_int_equal(h.kind, HOST_ADDRESS);
	return h.ip;
}

static const struct {
	enum address_class class;
	const char *addresses[12];
} rows[] = {
	{ ADDRESS_PUBLIC,
	  { "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
	    "126.255.255.255", "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255",
	    "172.32.0.0" } },
	{ ADDRESS_PUBLIC,
	  { "192.0.1.0", "192.0.2.1", "198.51.100.7", "203.0.113.9", "192.167.255.255",
	    "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "192.88.98.255",
	    "192.88.100.0" } },
	{ ADDRESS_PUBLIC,
	  { "2001:db8::1", "2606:4700::1111", "2001:200::1", "2003::1", "3fff:ffff::1",
	    "2a00::" } },
	{ ADDRESS_PRIVATE,
	  { "10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255", "192.168.0.0",
	    "192.168.255.255", "100.64.0.0", "100.127.255.255" } },
	{ ADDRESS_PRIVATE, { "fc00::1", "fdff:ffff::1", "fd00:ec2::253", "fec0::1" } },
	{ ADDRESS_METADATA,
	  { "169.254.169.254", "169.254.170.2", "169.254.0.0", "169.254.255.255", "100.100.100.200",
	    "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254",
	    "::ffff:169.254.169.254" } },
	{ ADDRESS_LOOPBACK,
	  { "127.0.0.1", "127.255.255.255", "0.0.0.0", "0.255.255.255", "::1",
	    "::", "::ffff:127.0.0.1", "::ffff:0.0.0.0" } },
	{ ADDRESS_LINK_LOCAL, { "fe80::1", "febf:ffff::1" } },
	{ ADDRESS_MULTICAST, { "224.0.0.1", "239.255.255.255", "255.255.255.255", "ff02::1" } },
	{ ADDRESS_RESERVED,
	  { "198.18.0.0", "198.19.255.255", "192.0.0.0", "192.0.0.255", "192.88.99.1", "240.0.0.1",
	    "255.255.255.254" } },
	{ ADDRESS_RESERVED,
	  { "100::1", "2001:2::1", "2001:1ff:ffff::1", "4000::1", "1fff::1", "5f00::1",
	    "fe00::1" } },
	{ ADDRESS_TRANSLATED,
	  { "64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::a00:1", "2002:7f00:1::1", "2001::1",
	    "2001:0:ffff::1", "::7f00:1", "::808:808", "::ffff:0:7f00:1" } },
};

static void test_classes(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t k = 0; rows[i].addresses[k]; k++) {
			struct ip ip = ip_of(rows[i].addresses[k]);

			if (address_classify(&ip) != rows[i].class)
				fail_msg("%s is class %d, not %d", rows[i].addresses[k],
					 address_classify(&ip), rows[i].class);
		}
	assert_int_equal(address_classify(&(struct ip){ 0 }), ADDRESS_RESERVED);
}

static void test_own(void **state)
{
	struct ip items[] = { ip_of("203.0.113.5"), ip_of("2001:db8::5") };
	struct address_own own = { items, 2 };
	struct ip other = ip_of("203.0.113.6");

	(void)state;
	assert_true(address_is_own(&own, &items[0]));
	assert_true(address_is_own(&own, &items[1]));
	assert_false(address_is_own(&own, &other));
	assert_false(address_is_own(NULL, &other));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_classes),
					    cmocka_unit_test(test_own) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What programs inside ask their ssh-agent: what is taken for a login or a commit, and what is
 * not. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "rules/ssh_wire.h"

static void put(struct buf *b, const char *text)
{
	uint8_t head[4] = { 0, 0, 0, (uint8_t)strlen(text) };

	buf_add(b, head, 4);
	buf_puts(b, text);
}

static struct ssh_span span(const struct buf *b)
{
	return (struct ssh_span){ (const uint8_t *)b->data, b->len };
}

static void put_login(struct buf *b, const char *service, const char *method)
{
	put(b, "session");
	buf_add(b, "\x32", 1);
	put(b, "git");
	put(b, service);
	put(b, method);
	buf_add(b, "\x01", 1);
	put(b, "ssh-ed25519");
	put(b, "key");
}

static void test_login(void **state)
{
	auto_buf fine = { 0 }, service = { 0 }, method = { 0 }, bound = { 0 };
	struct ssh_userauth u;

	(void)state;
	put_login(&fine, "ssh-connection", "publickey");
	assert_true(ssh_userauth_read(span(&fine), &u));
	assert_true(ssh_span_is(u.user, "git") && ssh_span_is(u.session, "session"));
	for (size_t n = 0; n < fine.len; n++)
		assert_false(
			ssh_userauth_read((struct ssh_span){ (const uint8_t *)fine.data, n }, &u));
	buf_add(&fine, "x", 1);
	assert_false(ssh_userauth_read(span(&fine), &u));
	put_login(&service, "ssh-userauth", "publickey");
	assert_false(ssh_userauth_read(span(&service), &u));
	put_login(&method, "ssh-connection", "hostbased");
	assert_false(ssh_userauth_read(span(&method), &u));
	put_login(&bound, "ssh-connection", "publickey-hostbound-v00@openssh.com");
	assert_false(ssh_userauth_read(span(&bound), &u));
	put(&bound, "host");
	assert_true(ssh_userauth_read(span(&bound), &u));
	assert_true(ssh_span_is(u.host_key, "host"));
}

static void put_commit(struct buf *b, const char *space, const char *reserved, const char *hash)
{
	buf_puts(b, "SSHSIG");
	put(b, space);
	put(b, reserved);
	put(b, hash);
	put(b, "0123456789abcdef0123456789abcdef");
}

static void test_commit(void **state)
{
	auto_buf fine = { 0 }, space = { 0 }, reserved = { 0 }, hash = { 0 };

	(void)state;
	put_commit(&fine, "git", "", "sha256");
	assert_true(ssh_sig_read(span(&fine), "git"));
	assert_false(ssh_sig_read(span(&fine), "file"));
	put_commit(&space, "file", "", "sha256");
	assert_false(ssh_sig_read(span(&space), "git"));
	put_commit(&reserved, "git", "x", "sha256");
	assert_false(ssh_sig_read(span(&reserved), "git"));
	put_commit(&hash, "git", "", "sha512");
	assert_false(ssh_sig_read(span(&hash), "git"));
}

static void test_requests(void **state)
{
	struct ssh_request q;

	(void)state;
	assert_true(ssh_request_read((const uint8_t *)"\x0b", 1, &q));
	assert_int_equal(q.ask, SSH_ASK_LIST);
	assert_false(ssh_request_read((const uint8_t *)"\x0bx", 2, &q));
	assert_false(ssh_request_read((const uint8_t *)"", 0, &q));
	assert_false(ssh_request_read((const uint8_t *)"\x0d\xff\xff\xff\xff", 5, &q));
	assert_true(ssh_request_read((const uint8_t *)"\x13", 1, &q));
	assert_int_equal(q.ask, SSH_ASK_OTHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_login),
					    cmocka_unit_test(test_commit),
					    cmocka_unit_test(test_requests) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

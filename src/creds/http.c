/*
 * ward-secret-http: asks one URL for a secret, with the token on standard input, and writes the
 * status, a line break and the answer. A program of its own because it links an HTTP client;
 * started by ward-secrets with the user's environment, whose proxy variables count. TLS is always
 * verified, redirects are not followed (the token would go along), answers are bounded. HTTP
 * without TLS only to this machine itself, which policy_grant.c has checked and CURLOPT_PROTOCOLS
 * cannot: it is checked here again.
 */
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_MOST 32000
#define TOKEN_MOST 8192

struct answer {
	char bytes[ANSWER_MOST];
	size_t n;
};

static size_t take(char *bytes, size_t size, size_t count, void *to)
{
	struct answer *a = to;
	size_t n = size * count;

	if (n > sizeof(a->bytes) - a->n)
		return 0;
	memcpy(a->bytes + a->n, bytes, n);
	a->n += n;
	return n;
}

static int is_near(const char *url)
{
	return strncmp(url, "http://127.0.0.1", 16) == 0 ||
	       strncmp(url, "http://localhost", 16) == 0 || strncmp(url, "http://[::1]", 12) == 0;
}

/* "X-Vault-Token: TOKEN" of standard input; "" when there is none. */
static void read_token(char *header, size_t room)
{
	size_t n = (size_t)snprintf(header, room, "X-Vault-Token: "), first = n;
	ssize_t got;

	while (n < room - 1 && (got = read(0, header + n, room - 1 - n)) > 0)
		n += (size_t)got;
	header[n == first ? 0 : n] = '\0';
}

int main(int argc, char **argv)
{
	static struct answer answer;
	static char header[TOKEN_MOST + 32];
	struct curl_slist *headers = NULL;
	CURL *c = argc == 2 ? curl_easy_init() : NULL;
	long status = 0;
	int r = 1;

	if (!c)
		return 2;
	read_token(header, sizeof(header));
	if (*header)
		headers = curl_slist_append(headers, header);
	headers = curl_slist_append(headers, "X-Vault-Request: true");
	curl_easy_setopt(c, CURLOPT_URL, argv[1]);
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, is_near(argv[1]) ? "http" : "https");
	curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 1L);
	curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 2L);
	curl_easy_setopt(c, CURLOPT_TIMEOUT, 12L);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "ward");
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, &answer);
	if (curl_easy_perform(c) == CURLE_OK &&
	    curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK) {
		printf("%03ld\n", status);
		r = fwrite(answer.bytes, 1, answer.n, stdout) == answer.n && fflush(stdout) == 0
			    ? 0
			    : 1;
	}
	explicit_bzero(header, sizeof(header));
	explicit_bzero(&answer, sizeof(answer));
	curl_slist_free_all(headers);
	curl_easy_cleanup(c);
	return r;
}

/*
 * Reading the configuration. In: a memory file that the supervisor wrote and sealed. Out: rules,
 * and what the kernel brings. Runs in front and dial before they lock themselves up, and when the
 * rules change.
 */
#include "gateway/config.h"

#include <errno.h>
#include <string.h>

#include "rules/canary_find.h"
#include "rules/upstream.h"

int config_read(int fd, struct rules **ret_rules, struct gate_config *ret_config,
		struct ward_err *e)
{
	struct gate_config config;
	auto_free uint8_t *bytes = NULL;
	int r;

	if (pread(fd, &config, sizeof(config), 0) != (ssize_t)sizeof(config) ||
	    config.magic != GATE_MAGIC || config.rules_bytes > RULES_BYTES_MAX ||
	    config.match_count > GATE_MATCHES_MAX || config.classes.count > NET_CLASSES_MAX ||
	    config.classes.port_count > NET_CLASS_PORTS_MAX)
		return ward_fail(e, EINVAL, "the gateway was started without a configuration");
	bytes = malloc(config.rules_bytes);
	if (!bytes)
		return ward_fail(e, ENOMEM, "out of memory");
	if (pread(fd, bytes, config.rules_bytes, sizeof(config)) != (ssize_t)config.rules_bytes)
		return ward_fail(e, EINVAL, "the gateway's configuration is incomplete");
	r = rules_decode(bytes, config.rules_bytes, ret_rules);
	if (r < 0)
		return ward_fail(e, -r, "the gateway's rules cannot be read");
	if (ret_config)
		*ret_config = config;
	return 0;
}

int config_read_keys(const struct gate_config *config, char **ret, struct ward_err *e)
{
	off_t at = (off_t)(sizeof(*config) + config->rules_bytes + config->proxy_bytes);

	*ret = NULL;
	if (!config->keys_bytes)
		return 0;
	/* ends with an empty one */
	*ret = config->keys_bytes <= GATE_KEYS_MAX ? calloc(config->keys_bytes + 2, 1) : NULL;
	if (!*ret ||
	    pread(GATE_FD_CONFIG, *ret, config->keys_bytes, at) != (ssize_t)config->keys_bytes)
		return ward_fail(e, EINVAL, "the gateway's configuration is incomplete");
	return 0;
}

int config_read_canaries(const struct gate_config *config, struct canary_finder **ret,
			 struct ward_err *e)
{
	off_t at = (off_t)(sizeof(*config) + config->rules_bytes + config->proxy_bytes +
			   config->keys_bytes);
	char tokens[CANARY_VALUES_MAX * CANARY_TOKEN];

	*ret = NULL;
	if (!config->canary_bytes)
		return 0;
	if (config->canary_bytes > sizeof(tokens) || config->canary_bytes % CANARY_TOKEN ||
	    pread(GATE_FD_CONFIG, tokens, config->canary_bytes, at) !=
		    (ssize_t)config->canary_bytes)
		return ward_fail(e, EINVAL, "the gateway's configuration is incomplete");
	return canary_finder_new(tokens, config->canary_bytes / CANARY_TOKEN, ret, e);
}

int config_read_proxy(struct upstream *ret, struct ward_err *e)
{
	struct gate_config config;

	memset(ret, 0, sizeof(*ret));
	if (pread(GATE_FD_CONFIG, &config, sizeof(config), 0) != (ssize_t)sizeof(config))
		return ward_fail(e, EINVAL, "the gateway was started without a configuration");
	if (!config.proxy_bytes)
		return 0;
	if (config.proxy_bytes != sizeof(*ret) ||
	    pread(GATE_FD_CONFIG, ret, sizeof(*ret),
		  (off_t)(sizeof(config) + config.rules_bytes)) != (ssize_t)sizeof(*ret) ||
	    !ret->port)
		return ward_fail(e, EINVAL, "the gateway's configuration is incomplete");
	return 0;
}

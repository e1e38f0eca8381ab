/*
 * Reading the command line. In: argv behind the verb. Out: struct options; policy fields stay text,
 * their meaning is the policy's business. One loop over tables/options.def; the rows hold their
 * text in place, without pointers, so that the start path of `ward run` pays for no relocation.
 * Refuses unknown options with the nearest known one, and options that this build does not have
 * yet: nothing is ever ignored.
 */
#include "cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/text.h"
#include "model/event.h"
#include "plan/spec_mount.h"
#include "policy/policy_secret.h"
#include "policy/policy_ssh.h"

enum kind {
	KIND_FLAG,
	KIND_TEXT,
	KIND_MAYBE,
	KIND_ONE,
	KIND_MANY,
	KIND_MOUNT_RO,
	KIND_MOUNT_RW,
	KIND_PAIR,
	KIND_ENTRY,
	KIND_SECRET,
	KIND_SSH,
	KIND_BELOW,
	KIND_SETS
};

struct option_row {
	uint64_t verbs;
	uint8_t kind;
	uint16_t offset; /* of the member of struct options */
	char short_name[2];
	char name[18];    /* with its dashes */
	char metavar[16]; /* "": takes no value */
	char field[28];   /* SETS: and behind its zero the value */
};

#define AT(member) offsetof(struct options, member)

static const struct option_row rows[] = {
#define FLAG(v, s, n, member, h) { v, KIND_FLAG, AT(member), s, "--" n, "", "" },
#define TEXT(v, s, n, m, member, h) { v, KIND_TEXT, AT(member), s, "--" n, m, "" },
#define MAYBE(v, s, n, m, member, h) { v, KIND_MAYBE, AT(member), s, "--" n, m, "" },
#define FIELD(v, s, n, m, kind, f, h) { v, KIND_##kind, 0, s, "--" n, m, f },
#define SETS(v, s, n, f, value, h) { v, KIND_SETS, 0, s, "--" n, "", f "\0" value },
#include "options.def"
};

/* Options that exclude each other. */
static const struct {
	uint64_t verbs;
	char names[48];
} conflicts[] = {
#define ONE_OF(v, names) { v, names },
#include "options_conflict.def"
};

/* Options that take no argument beside them. */
static const struct {
	uint64_t verbs;
	char name[12];
} alone[] = {
#define ALONE(v, name) { v, name },
#include "options_conflict.def"
};

/* The verbs that have such options: the others, `ward run` among them, do not touch the tables. */
static const uint64_t conflicting = 0
#define ONE_OF(v, names) | (v)
#define ALONE(v, name) | (v)
#include "options_conflict.def"
	;

_Static_assert(ARRAY_LEN(rows) <= OPTIONS_MAX, "struct options has a bit for each row");

uint64_t options_of(enum verb verb)
{
	return verb == VERB_SHELL || verb == VERB_AGENT ? V_RUN : 1ull << verb;
}

static const struct option_row *find_long(enum verb verb, const char *name, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].verbs & options_of(verb) && strncmp(rows[i].name, name, n) == 0 &&
		    rows[i].name[n] == '\0')
			return &rows[i];
	return NULL;
}

static const struct option_row *find_short(enum verb verb, char name)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].verbs & options_of(verb) && name && rows[i].short_name[0] == name)
			return &rows[i];
	return NULL;
}

static int fail_unknown(enum verb verb, const char *word, struct ward_err *e)
{
	unsigned distance = UINT_MAX;
	const char *best = NULL;
	char name[32] = "";
	ward_fail(e, EINVAL, "unknown option %.200s", word);
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].verbs & options_of(verb))
			text_nearest(name + strspn(name, "-"), rows[i].name + 2, &best, &distance);
	if (best)
		return ward_remedy(e, "did you mean --%s? See ward %s --help", best,
				   verb_name(verb));
	return ward_remedy(e, "ward %s --help lists the options; -- ends them", verb_name(verb));
}

static int add_field(struct options *o, const char *field, const char *value, const char *option,
		     bool append, struct ward_err *e)
{
	if (o->field_count == o->field_cap) {
		size_t cap = o->field_cap ? o->field_cap * 2 : 8;
		struct spec_option *grown = reallocarray(o->fields, cap, sizeof(*grown));

		if (!grown)
			return ward_fail(e, ENOMEM, "out of memory");
		o->fields = grown;
		o->field_cap = cap;
	}
	o->fields[o->field_count++] = (struct spec_option){
		.field = field,
		.value = value,
		.option = option,
		.append = append,
	};
	return 0;
}

/* Keeps a string that was put together for as long as the options live; NULL when out of memory. */
static const char *keep(struct options *o, char *made)
{
	strv_take(&o->made, made);
	return o->made.failed ? NULL : o->made.items[o->made.len - 1];
}

/* PATH[:AT] -> one entry of a list of mounts. */
static int add_mount(struct options *o, const struct option_row *row, const char *value,
		     const char *option, struct ward_err *e)
{
	auto_free char *source = NULL;
	const char *at = NULL, *kept;
	char *entry = NULL;

	for (const char *s = value; (s = strstr(s, ":/")); s++)
		at = s + 1;
	source = at ? strndup(value, (size_t)(at - 1 - value)) : strdup(value);
	if (!source)
		return ward_fail(e, ENOMEM, "out of memory");
	if (!*source)
		return ward_fail(e, EINVAL, "%s: the path is empty", option);
	if (!text_is_utf8(value))
		return ward_fail(e, EINVAL, "%s %.200s: the path is not UTF-8", option, value);
	if (spec_mount_entry(source, at, row->kind == KIND_MOUNT_RW, &entry, e) < 0)
		return ward_wrap(e, "%s", option);
	kept = keep(o, entry);
	if (!kept)
		return ward_fail(e, ENOMEM, "out of memory");
	return add_field(o, row->field, kept, option, true, e);
}

int options_add_secret(struct options *o, const char *value, const char *option, struct ward_err *e)
{
	auto_buf grant = { 0 };
	const char *kept;

	if (secret_option_read(value, &grant, e) < 0)
		return ward_wrap(e, "%s", option);
	kept = keep(o, buf_take(&grant));
	if (!kept)
		return ward_fail(e, ENOMEM, "out of memory");
	if (add_field(o, "credentials.grants", kept, option, true, e) < 0)
		return -e->code;
	o->fields[o->field_count - 1].reach = true;
	return add_field(o, "credentials.mode", "just_in_time", option, false, e);
}

/* [USER@]HOST[:PORT] -> one entry of credentials.ssh, in force and reachable. */
static int add_ssh(struct options *o, const char *value, const char *option, struct ward_err *e)
{
	auto_buf entry = { 0 };
	const char *kept;

	if (ssh_option_read(value, &entry, e) < 0)
		return ward_wrap(e, "%s", option);
	kept = keep(o, buf_take(&entry));
	if (!kept)
		return ward_fail(e, ENOMEM, "out of memory");
	if (add_field(o, "credentials.ssh", kept, option, true, e) < 0)
		return -e->code;
	o->fields[o->field_count - 1].reach = true;
	return add_field(o, "credentials.mode", "just_in_time", option, false, e);
}

static int add_pair(struct options *o, const char *value, const char *option, bool append,
		    struct ward_err *e)
{
	size_t n = strcspn(value, "=");
	const char *field;

	if (!value[n] || !n) {
		ward_fail(e, EINVAL, "%s %.200s: expected FIELD=VALUE", option, value);
		return ward_remedy(e, "for instance %s %s", option,
				   append ? "process.env=LANG=C" : "process.syscalls=build");
	}
	field = keep(o, strndup(value, n));
	if (!field)
		return ward_fail(e, ENOMEM, "out of memory");
	return add_field(o, field, value + n + 1, option, append, e);
}

/* FIELD=VALUE that a policy file goes over. */
static int add_below(struct options *o, const char *value, const char *option, struct ward_err *e)
{
	int r = add_pair(o, value, option, false, e);

	if (r == 0)
		o->fields[o->field_count - 1].below = true;
	return r;
}

static int apply(struct options *o, const struct option_row *row, const char *option,
		 const char *value, struct ward_err *e)
{
	char *member = (char *)o + row->offset;
	size_t number = (size_t)(row - rows);

	o->given[number / 64] |= 1ull << number % 64;
	switch ((enum kind)row->kind) {
	case KIND_FLAG:
		*(bool *)member = true;
		return 0;
	case KIND_TEXT:
		if (!*value)
			return ward_fail(e, EINVAL, "%s: the value is empty", option);
		*(const char **)(void *)member = value;
		return 0;
	case KIND_MAYBE:
		*(const char **)(void *)member = value;
		return 0;
	case KIND_ONE:
	case KIND_MANY:
		return add_field(o, row->field, value, option, row->kind == KIND_MANY, e);
	case KIND_MOUNT_RO:
	case KIND_MOUNT_RW:
		return add_mount(o, row, value, option, e);
	case KIND_SETS:
		return add_field(o, row->field, row->field + strlen(row->field) + 1, option, false,
				 e);
	case KIND_PAIR:
	case KIND_ENTRY:
		return add_pair(o, value, option, row->kind == KIND_ENTRY, e);
	case KIND_SECRET:
		return options_add_secret(o, value, option, e);
	case KIND_SSH:
		return add_ssh(o, value, option, e);
	case KIND_BELOW:
		break;
	}
	return add_below(o, value, option, e);
}

/* Letters of one word that take no value, but for the last: -it. *ret_row is the last, *ret_value
 * what stands behind it. */
static int read_letters(struct options *o, const char *word, const struct option_row **ret_row,
			const char **ret_value, struct ward_err *e)
{
	for (const char *letter = word + 1;; letter++) {
		const struct option_row *row = find_short(o->verb, *letter);
		int r;

		if (!row)
			return fail_unknown(o->verb, word, e);
		if ((row->metavar[0] && row->kind != KIND_MAYBE) || !letter[1]) {
			*ret_row = row;
			*ret_value = letter[1] ? letter + 1 : NULL;
			return 0;
		}
		r = apply(o, row, row->name, "", e);
		if (r < 0)
			return r;
	}
}

/* One option at **at; *at moves over a value of its own word. */
static int read_one(struct options *o, char ***at, struct ward_err *e)
{
	const char *word = **at, *value = NULL;
	const struct option_row *row = NULL;

	if (word[1] == '-') {
		size_t n = strcspn(word, "=");

		row = find_long(o->verb, word, n);
		if (word[n])
			value = word + n + 1;
	} else {
		int r = read_letters(o, word, &row, &value, e);

		if (r < 0)
			return r;
	}
	if (!row)
		return fail_unknown(o->verb, word, e);
	if (row->kind == KIND_MAYBE)
		return apply(o, row, row->name, value ? value : "", e);
	if (!row->metavar[0] && value)
		return ward_fail(e, EINVAL, "%s takes no value", row->name);
	if (row->metavar[0] && !value) {
		value = (*at)[1];
		if (!value || strcmp(value, "--") == 0)
			return ward_fail(e, EINVAL, "%s needs a value: %s", row->name,
					 row->metavar);
		(*at)++;
	}
	return apply(o, row, row->name, value ? value : "", e);
}

bool options_name_image(const struct options *o)
{
	for (size_t i = 0; i < o->field_count; i++)
		if (strcmp(o->fields[i].field, "image") == 0)
			return true;
	return o->policy_file != NULL; /* it may */
}

static bool is_given(const struct options *o, const struct option_row *row)
{
	size_t number = row ? (size_t)(row - rows) : 0;

	return row && o->given[number / 64] & 1ull << number % 64;
}

/* Two options that exclude each other; one of them would be ignored. */
static int check_conflicts(const struct options *o, struct ward_err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(conflicts); i++) {
		const char *first = NULL;

		if (!(conflicts[i].verbs & options_of(o->verb)))
			continue;
		for (const char *at = conflicts[i].names; *at;
		     at += strcspn(at, " "), at += *at == ' ') {
			const struct option_row *row = find_long(o->verb, at, strcspn(at, " "));

			if (!is_given(o, row))
				continue;
			if (first) {
				ward_fail(e, EINVAL, "%s and %s exclude each other", first,
					  row->name);
				return ward_remedy(e, "give only one of %s", conflicts[i].names);
			}
			first = row->name;
		}
	}
	return 0;
}

/* A word beside an option that says what is meant would be ignored, too: `ward kill --all web` is
 * none of both. */
static int check_alone(const struct options *o, struct ward_err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(alone); i++) {
		if (!o->word_count || !(alone[i].verbs & options_of(o->verb)) ||
		    !is_given(o, find_long(o->verb, alone[i].name, strlen(alone[i].name))))
			continue;
		ward_fail(e, EINVAL, "%s and %.200s exclude each other", alone[i].name,
			  o->words[0]);
		return ward_remedy(e, "give %s, or names", alone[i].name);
	}
	return 0;
}

static int count_words(const struct options *o, struct ward_err *e)
{
	static const struct {
		uint32_t min, max;
	} bounds[] = {
#define VERB(id, name, min, max, ...) { min, max },
#include "verbs.def"
	};

	if (o->help)
		return 0;
	if (o->word_count < bounds[o->verb].min &&
	    !(o->verb == VERB_RUN && (o->detach || o->restore || options_name_image(o)))) {
		ward_fail(e, EINVAL, "%s",
			  o->verb == VERB_RUN ? "no command given" : "missing argument");
		return ward_remedy(e, "see ward %s --help", verb_name(o->verb));
	}
	if (o->restore && o->word_count) {
		ward_fail(e, EINVAL,
			  "--restore continues the command of the checkpoint; unexpected argument: "
			  "%.100s",
			  o->words[0]);
		return ward_remedy(e, "ward run --restore %.60s", o->restore);
	}
	if (o->verb == VERB_RUN && o->words[0] && !*o->words[0])
		return ward_fail(e, EINVAL, "the name of the command is empty");
	if (o->word_count > bounds[o->verb].max)
		return ward_fail(e, EINVAL, "unexpected argument: %.200s",
				 o->words[bounds[o->verb].max]);
	return 0;
}

int options_read(enum verb verb, char **argv, struct options *o, struct ward_err *e)
{
	static const bool command[] = {
#define COMMAND true
#define PLAIN false
#define VERB(id, name, min, max, words, ...) words,
#include "verbs.def"
#undef COMMAND
#undef PLAIN
	};
	char **out = argv, **at = argv;

	*o = (struct options){ .verb = verb, .line = argv, .words = argv };
	for (; *at; at++) {
		if (strcmp(*at, "--") == 0) {
			at++;
			break;
		}
		if ((*at)[0] == '-' && (*at)[1]) {
			int r = read_one(o, &at, e);

			if (r < 0)
				return r;
		} else if (command[verb]) {
			break;
		} else {
			*out++ = *at;
		}
	}
	if (out == argv) {
		o->words = at;
		while (o->words[o->word_count])
			o->word_count++;
	} else {
		while (*at)
			*out++ = *at++;
		*out = NULL;
		o->word_count = (size_t)(out - argv);
	}
	if (!o->help && conflicting & options_of(verb) &&
	    (check_conflicts(o, e) < 0 || check_alone(o, e) < 0))
		return -EINVAL;
	return count_words(o, e);
}

void options_clear(struct options *o)
{
	free(o->fields);
	strv_free(&o->made);
	*o = (struct options){ 0 };
}

int say_usage(const struct ward_err *e, const struct options *o)
{
	return say_error(e, o->json, options_of(o->verb) == V_RUN ? EXIT_REFUSED : EXIT_USAGE);
}

/* Files that name the versions of a project's tools, or set variables: whether they do nothing
 * else. */
#ifndef WARD_RULES_VERSION_FILE_H
#define WARD_RULES_VERSION_FILE_H

#include <stddef.h>

/* How a file names versions (tables/versions.def). */
enum version_form {
	VERSION_WORDS,     /* words and comments: .nvmrc, .python-version */
	VERSION_PACKAGE,   /* package.json: packageManager, devEngines */
	VERSION_TOOLCHAIN, /* rust-toolchain.toml */
	VERSION_ENV        /* .env: variables, but none by which programs run others */
};

/* Longer files are not read. */
#define VERSION_FILE_MAX (1u << 20)

/* What in the n bytes is more than versions, aliases and ranges of them: static text; NULL:
 * nothing. Pure, fuzzed (fuzz/version_file.c). */
const char *version_file_fault(enum version_form form, const char *text, size_t n);

#endif

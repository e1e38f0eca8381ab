/*
 * The state directory and run ids. In: the environment. Out: an open directory that only the
 * caller's user can change. Runs in the supervisor and in the verbs, on the start path: two system
 * calls when all is there already.
 *
 *	STATE/live/N		the record of a run that has not ended; locked while its supervisor
 *				lives, empty if no process uses it
 *	STATE/quarantine/ID/	what was moved out of its trees: index, and 0/ 1/ ... for each tree
 *	STATE/trusted/		see trust.c
 *	STATE/caches/, homes/	see volume.c
 *	STATE/checkpoints/	see checkpoint_store.c
 *	STATE/kept-etc/		see plan/etc_cache.c, plan/etc_make.c
 */
#include "state/store_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

/* Makes the directory and those above it that are missing. */
static int make_path(const char *path, struct ward_err *e)
{
	auto_free char *copy = strdup(path);

	if (!copy)
		return ward_fail(e, ENOMEM, "out of memory");
	for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(copy, 0700) < 0 && errno != EEXIST && errno != EROFS && errno != EACCES)
			break;
		*slash = '/';
	}
	if (mkdir(path, 0700) == 0 || errno == EEXIST)
		return 0;
	ward_fail_errno(e, "cannot make the state directory %s", path);
	return ward_remedy(e, "create it, free some space, or set WARD_STATE_DIR to a directory "
			      "that you can write to");
}

static int check_owner(int fd, const char *path, struct ward_err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return ward_fail_errno(e, "cannot access the state directory %s", path);
	if (st.st_uid != geteuid()) {
		ward_fail(e, EPERM, "the state directory %s belongs to uid %u, not to uid %u", path,
			  st.st_uid, geteuid());
		return ward_remedy(e, "set WARD_STATE_DIR to a directory of your own");
	}
	if (st.st_mode & 022) {
		ward_fail(e, EPERM, "other users can write to the state directory %s (mode %04o)",
			  path, st.st_mode & 07777);
		return ward_remedy(e, "chmod go-w %s", path);
	}
	return 0;
}

/* A link may stand for the directory if no other user can redirect it. */
static bool is_own_link(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISLNK(st.st_mode) &&
	       (st.st_uid == 0 || st.st_uid == geteuid());
}

/* ext4 passes over the inode of every file that was removed within the last minutes nearby, one by
 * one, when it makes a file. Each run makes one, so what is kept here must not lie near what
 * others make and remove: directories in this one are spread. */
static void spread_directories(int fd)
{
	unsigned flags;

	if (ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
		return; /* a file system without such a thing */
	flags |= FS_TOPDIR_FL;
	(void)!ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

int store_open(struct ward_err *e)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	auto_free char *path = NULL;
	auto_fd fd = -1;
	int status = state_dir_path(&path, e);

	if (status < 0)
		return status;
	fd = open(path, flags | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT) {
		status = make_path(path, e);
		if (status < 0)
			return status;
		fd = open(path, flags | O_NOFOLLOW);
		if (fd >= 0)
			spread_directories(fd);
	}
	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR) && is_own_link(path))
		fd = open(path, flags);
	if (fd < 0) {
		ward_fail_errno(e, "cannot open the state directory %s", path);
		return ward_remedy(
			e, "make it a directory that you own, or set WARD_STATE_DIR to another");
	}
	status = check_owner(fd, path, e);
	return status < 0 ? status : take_fd(&fd);
}

int store_open_dir(int dir_fd, const char *name, struct ward_err *e)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(dir_fd, name, flags);

	if (fd < 0 && errno == ENOENT && (mkdirat(dir_fd, name, 0700) == 0 || errno == EEXIST))
		fd = openat(dir_fd, name, flags);
	if (fd >= 0)
		return fd;
	ward_fail_errno(e, "cannot make %s in the state directory", name);
	return ward_remedy(e, "free some space, make the state directory writable, or set "
			      "WARD_STATE_DIR to another one");
}

/* Days since 1970 as a date; gmtime() would read the time zone's files first. */
static void civil_date(int64_t days, unsigned *year, unsigned *month, unsigned *day)
{
	int64_t z = days + 719468, era = z / 146097;
	unsigned of_era = (unsigned)(z - era * 146097);
	unsigned y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	unsigned of_year = of_era - (365 * y + y / 4 - y / 100);
	unsigned m = (5 * of_year + 2) / 153;

	*day = of_year - (153 * m + 2) / 5 + 1;
	*month = m < 10 ? m + 3 : m - 9;
	*year = (unsigned)(y + era * 400) + (*month <= 2);
}

/* The other way round. */
static int64_t civil_days(unsigned year, unsigned month, unsigned day)
{
	int64_t y = (int64_t)year - (month <= 2), era = y / 400;
	unsigned of_era = (unsigned)(y - era * 400);
	unsigned of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static const char id_letters[] = "0123456789abcdefghjkmnpqrstvwxyz"; /* in the order of strcmp */

#define ID_LETTERS 6 /* of five bits: a second has fewer nanoseconds than 2^30 */
#define ID_RANDOM 0x3ffu

/*
 * The six letters are the nanoseconds of the second, with random bits in place of the last ten: two
 * ids sort by the microsecond in which they were made, and of one microsecond in an order that is
 * arbitrary but always the same.
 */
void store_new_id(char *ret_id, size_t n)
{
	unsigned year, month, day, second, random = 0, fraction;
	struct timespec now;
	char tail[ID_LETTERS + 1] = { 0 };

	clock_gettime(CLOCK_REALTIME, &now);
	fraction = (unsigned)now.tv_nsec;
	/* else: only names must differ */
	if (getrandom(&random, sizeof(random), 0) == sizeof(random))
		fraction = (fraction & ~ID_RANDOM) | (random & ID_RANDOM);
	for (size_t i = ID_LETTERS; i-- > 0; fraction >>= 5)
		tail[i] = id_letters[fraction & 31];
	civil_date(now.tv_sec / 86400, &year, &month, &day);
	second = (unsigned)(now.tv_sec % 86400);
	snprintf(ret_id, n, "%04u%02u%02u-%02u%02u%02u-%s", year % 10000, month, day, second / 3600,
		 second / 60 % 60, second % 60, tail);
}

/* count digits at *at, which moves on; 9999: there is something else. */
static unsigned read_digits(const char **at, unsigned count)
{
	unsigned value = 0;

	for (; count; count--, (*at)++) {
		if (**at < '0' || **at > '9')
			return 9999;
		value = value * 10 + (unsigned)(**at - '0');
	}
	return value;
}

uint64_t store_id_ns(const char *id)
{
	unsigned year = read_digits(&id, 4), month = read_digits(&id, 2), day = read_digits(&id, 2),
		 hour, minute, second;
	uint64_t fraction = 0;

	if (*id++ != '-' || year < 1970 || month < 1 || month > 12 || day < 1 || day > 31)
		return 0;
	hour = read_digits(&id, 2);
	minute = read_digits(&id, 2);
	second = read_digits(&id, 2);
	if (*id++ != '-' || hour > 23 || minute > 59 || second > 60)
		return 0;
	for (unsigned i = 0; i < ID_LETTERS; i++, id++) {
		const char *letter = *id ? strchr(id_letters, *id) : NULL;

		if (!letter)
			return 0;
		fraction = fraction << 5 | (uint64_t)(letter - id_letters);
	}
	if (*id)
		return 0;
	return ((uint64_t)civil_days(year, month, day) * 86400 + hour * 3600 + minute * 60 +
		second) *
		       1000000000 +
	       fraction;
}

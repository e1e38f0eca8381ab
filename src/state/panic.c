/*
 * The mark of `ward panic`. In: the state directory. Out: a bit of its mode (STORE_PANIC), which
 * every start looks at once its run is on record (store_check_panic). A mode changes on a full disk
 * too, survives a reboot and cannot be half written. It belongs to the user whose state directory
 * it is, as the runs do; no sandbox can reach that directory.
 */
#include "state/panic.h"

#include <errno.h>
#include <sys/stat.h>

#include "state/store_internal.h"

int panic_set(bool on, struct ward_err *e)
{
	auto_fd state = store_open(e);
	struct stat st;
	mode_t mode;

	if (state < 0)
		return state;
	if (fstat(state, &st) < 0)
		return ward_fail_errno(e, "cannot read the mode of the state directory");
	mode = st.st_mode & 07777;
	if (fchmod(state, on ? mode | STORE_PANIC : mode & ~(mode_t)STORE_PANIC) < 0 ||
	    fstat(state, &st) < 0 || !(st.st_mode & STORE_PANIC) != !on) {
		ward_fail(e, errno ? errno : ENOTSUP,
			  "cannot %s the mark that refuses new runs: the mode of the state "
			  "directory cannot be changed",
			  on ? "set" : "clear");
		return ward_remedy(e, "put the state directory on a file system that keeps modes, "
				      "or set WARD_STATE_DIR to another one");
	}
	return (mode & STORE_PANIC) != 0;
}

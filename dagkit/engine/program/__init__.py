"""What every worker needs to know of an application: a plain, picklable program, and how a compilation becomes one."""

"""Commands that run an application, or change a running one."""

"""Links by which an administrator registers or removes a trusted application: /manage/apps/install and /uninstall."""

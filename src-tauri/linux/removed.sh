#!/bin/sh
# After the package has gone. dpkg says `remove` or `purge`, rpm how many versions stay.
case "$1" in
  remove | purge | 0)
    echo "Your chats and models were kept, in each user's ~/.local/share/inglenook (or \$XDG_DATA_HOME/inglenook)."
    echo "Delete that folder to be rid of them."
    ;;
esac
exit 0

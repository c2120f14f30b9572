/** New versions of the program, in the settings. */
export const updates = {
  title: 'Updates',
  check: 'Check now',
  checking: 'Checking for updates…',
  installing: 'Installing the new version…',
  available: 'Version {version} is available.',
  published: 'Published on {date}.',
  current: 'This is the newest version.',
  at_start: 'Inglenook checks for updates each time it starts.',
  off: 'Inglenook checks for updates only when you press the button.',
  what_is_sent: 'A check requests one file from {hosts}. Nothing else is sent.',
  no_address: 'This build was made without an update address. It never checks for updates.',
  how_app_image:
    'Download the new AppImage where you got this one and replace the old file with it.',
  how_deb:
    'Download the new .deb package where you got this one and install it with apt install ./FILE.deb.',
  how_rpm:
    'Download the new .rpm package where you got this one and install it with dnf install ./FILE.rpm.',
  how_flatpak: 'Update Inglenook in your software center, or with flatpak update.',
  how_mac_app:
    'Download the new disk image where you got this one and move Inglenook to the Applications folder.',
  how_nsis: 'Download the new installer where you got this one and run it.',
  how_msi: 'Download the new installer where you got this one and run it.',
  how_source: 'Get the newer source and build it again.',
  downloading: 'Downloading the new version',
  download: 'Download',
  restart: 'Restart to update',
  page: 'Where to get it',
  automatic: 'Check automatically…',
  checked: 'Last checked: {when}',
  show: 'Show',
} as const;

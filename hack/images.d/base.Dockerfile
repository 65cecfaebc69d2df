# The local base: a root file system made by mmdebstrap, which is the build context.
FROM scratch
ADD rootfs.tar /
ENV LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

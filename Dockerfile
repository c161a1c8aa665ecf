# The image: the program, the libraries it loads and nothing else. docker build . or podman build . ; see docs/install.md.

# Debian 12 by digest, so that a tag that moves changes nothing.
ARG BUILD_BASE=debian:bookworm-slim@sha256:abd67ffcfa541b485a3dff59865ab629aa048a6c613e639d36e7456b0b229241
# What the program's folder starts from: empty, or an image with glibc's layout and no shell, by digest.
ARG RUNTIME_BASE=scratch

FROM ${BUILD_BASE} AS build
# Lines of sources.list, with \n between them, to take Debian's packages from a mirror, or from the archive of one day so that the build can be
# repeated next year. Name the security archive as well: libssl comes from there.
ARG APT_SOURCES=
# Seconds since 1970: the time of every file and of the SBOM. The time of the commit is a good one.
ARG SOURCE_DATE_EPOCH=0
# Where it is built. The program does not depend on it.
ARG SOURCE=/source
WORKDIR ${SOURCE}
COPY scripts/install-debian.sh scripts/
RUN if [ -n "${APT_SOURCES}" ]; then rm -f /etc/apt/sources.list.d/* && printf '%b\n' "${APT_SOURCES}" > /etc/apt/sources.list; fi && \
    scripts/install-debian.sh build image
COPY . .
RUN cmake --preset release -DDHC_BENCH=OFF --log-level=WARNING && \
    cmake --build --preset release --target device-health-controller && \
    image/make_root.py build/release/device-health-controller /image

# Only the SBOM: docker build --target sbom --output type=local,dest=. .
FROM scratch AS sbom
COPY --from=build /image/sbom.spdx.json /

FROM ${RUNTIME_BASE}
COPY --from=build /image /
# By number, so that Kubernetes can see that it is not root.
USER 65532:65532
EXPOSE 8080 8081
ENTRYPOINT ["/usr/bin/device-health-controller"]
CMD ["run"]

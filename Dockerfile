# The command line in an image. Build it in this folder, and run it where your tables are:
#
#   docker build --tag mmgibbs .
#   docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:/data" --volume mmgibbs-home:/home/mmgibbs \
#       mmgibbs run analysis.yaml
#
# The second volume keeps what the first run compiles. Where no Docker daemon runs, `.ci/image` does the same steps.
ARG PYTHON=3.13
FROM python:${PYTHON}-slim AS build
WORKDIR /source
COPY . .
RUN python -m venv /opt/mmgibbs && /opt/mmgibbs/bin/pip install --no-cache-dir .

FROM python:${PYTHON}-slim
COPY --from=build /opt/mmgibbs /opt/mmgibbs
ENV PATH=/opt/mmgibbs/bin:$PATH HOME=/home/mmgibbs
# Any user of the host may run the image, and write compiled kernels and settings of libraries there.
RUN mkdir -p /home/mmgibbs /data && chmod 1777 /home/mmgibbs /data
WORKDIR /data
USER 1000
ENTRYPOINT ["mmgibbs"]
CMD ["--help"]
